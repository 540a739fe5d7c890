defmodule Skillbook.Connections.Graph do
  @moduledoc false
  # Requests to Microsoft Graph v1.0, for the adapters of its services.
  #
  # A request names its path as Microsoft's reference does, such as `/me/messages/{id}/move`. That
  # is its name in telemetry, too.

  alias Skillbook.Connections.Account
  alias Skillbook.Connections.Client
  alias Skillbook.Connections.Client.MicrosoftRules
  alias Skillbook.ServiceError
  alias Skillbook.Support.UntilError

  @root "https://graph.microsoft.com/v1.0"
  @batch 20

  @doc """
  The request of a path. `ids` take the places of `{id}` in their order, `options` are `:query`,
  `:json`, `:body` and `:headers` of the client's request.
  """
  @spec request(atom(), String.t(), [String.t()], keyword()) :: keyword()
  def request(method, path, ids, options \\ []) do
    [method: method, url: @root <> fill(path, ids)] ++
      Keyword.take(options, [:query, :json, :body, :headers])
  end

  defp fill(path, ids) do
    [first | rest] = String.split(path, "{id}")
    rest |> Enum.zip(ids) |> Enum.reduce(first, fn {text, id}, url -> url <> part(id) <> text end)
  end

  defp part(id), do: URI.encode(id, &URI.char_unreserved?/1)

  @doc "The name of a request for telemetry."
  @spec name(atom(), String.t()) :: String.t()
  def name(method, path), do: String.upcase(to_string(method)) <> " " <> path

  @doc "Sends a request. The other options are those of the client."
  @spec call(Account.t(), atom(), String.t(), [String.t()], keyword()) ::
          {:ok, Client.answer()} | {:error, Exception.t()}
  def call(account, method, path, ids, options) do
    {own, options} = Keyword.split(options, [:query, :json, :body, :headers])
    options = [method: name(method, path)] ++ options
    Client.request(account, request(method, path, ids, own), options)
  end

  @doc "The same, for an answer that is an object."
  @spec object(Account.t(), atom(), String.t(), [String.t()], keyword()) ::
          {:ok, map()} | {:error, Exception.t()}
  def object(account, method, path, ids, options) do
    with {:ok, %{body: body}} <- call(account, method, path, ids, options) do
      if is_map(body), do: {:ok, body}, else: {:error, bad_answer(path)}
    end
  end

  @doc "The items of a list, page by page. The options are those of `Client.pages/3`."
  @spec list(Account.t(), String.t(), [String.t()], keyword()) ::
          {:ok, %{items: [term()], more: boolean(), last: term()}} | {:error, Exception.t()}
  def list(account, path, ids, options) do
    {own, options} = Keyword.split(options, [:query, :headers])
    options = [method: name(:get, path), items: "value"] ++ options
    Client.pages(account, request(:get, path, ids, own), options)
  end

  @doc """
  Reads objects by several paths, each `{path, ids, query}`, together. Those that are not there
  are `nil`; a part that fails otherwise is asked for again alone.
  """
  @spec objects(Account.t(), [{String.t(), [String.t()], keyword()}], keyword()) ::
          {:ok, [map() | nil]} | {:error, Exception.t()}
  def objects(account, parts, options) do
    parts
    |> Enum.chunk_every(@batch)
    |> UntilError.reduce([], fn chunk, found ->
      with {:ok, more} <- together(account, chunk, options), do: {:ok, found ++ more}
    end)
  end

  defp together(account, parts, options) do
    requests =
      for {{path, ids, query}, number} <- Enum.with_index(parts) do
        url = fill(path, ids) <> if(query == [], do: "", else: "?" <> URI.encode_query(query))
        headers = Map.new(options[:headers] || [])
        %{id: "#{number}", method: "GET", url: url, headers: headers}
      end

    batch = [json: %{requests: requests}, repeat: true, changes: false]
    batch = Keyword.take(options, [:scopes]) ++ batch

    with {:ok, answer} <- object(account, :post, "/$batch", [], batch) do
      answers = for %{"id" => id} = part <- items(answer["responses"]), into: %{}, do: {id, part}

      parts
      |> Enum.with_index()
      |> UntilError.map(fn {part, number} ->
        of_part(account, answers["#{number}"], part, options)
      end)
    end
  end

  defp of_part(_account, %{"status" => 200, "body" => %{} = body}, _part, _options),
    do: {:ok, body}

  defp of_part(_account, %{"status" => 404}, _part, _options), do: {:ok, nil}

  defp of_part(account, _failed, {path, ids, query}, options) do
    case object(account, :get, path, ids, [query: query] ++ options) do
      {:error, %ServiceError{kind: :not_found}} -> {:ok, nil}
      other -> other
    end
  end

  # Graph leaves fields out, but those that are there have a type.

  @doc "A list of an answer; `[]` without one."
  @spec items(term()) :: [term()]
  def items(list) when is_list(list), do: list
  def items(_other), do: []

  @doc "Whether a value is missing, or an object whose fields of these names are texts."
  @spec object?(term(), [String.t()]) :: boolean()
  def object?(nil, _names), do: true
  def object?(%{} = object, names), do: texts?(object, names)
  def object?(_other, _names), do: false

  @doc "Whether the fields of these names are texts, as far as they are there."
  @spec texts?(map(), [String.t()]) :: boolean()
  def texts?(object, names), do: Enum.all?(names, &(is_nil(object[&1]) or is_binary(object[&1])))

  @doc "The error of an answer to a request of a path that cannot be read."
  @spec bad_answer(String.t()) :: ServiceError.t()
  def bad_answer(path) do
    service = MicrosoftRules.service(URI.parse(@root <> path))
    %ServiceError{kind: :bad_answer, service: service}
  end

  @doc "A text in a filter: a quote is written twice."
  @spec quoted(String.t()) :: String.t()
  def quoted(text), do: "'" <> String.replace(text, "'", "''") <> "'"
end
