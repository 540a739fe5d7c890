defmodule Skillbook.Web.Request do
  @moduledoc """
  A request of HTTP, read by an adapter.

  ## Fields

    * `:method` - such as `"GET"`
    * `:scheme` - `:http` or `:https`
    * `:host` - the header `host`, such as `"127.0.0.1:4004"`; `nil` if there was none
    * `:path` - the decoded segments of the path below `:base`; `[]` for `/`
    * `:base` - the prefix that the routes are mounted at, such as `"/admin/skills"`, or `""`
    * `:query` - the query as it was sent, without the question mark
    * `:headers` - pairs of a lower-case name and a value
    * `:body` - the whole body
    * `:peer` - the address of the client, `:unix` for a unix socket, or `nil`
    * `:fields` - the fields of the form, if the adapter has read them from the body, or `nil`
    * `:caller` - the `Skillbook.Web.Caller` that `Skillbook.Web.call/2` has found, or `nil`

  ## Examples

      iex> request = %Skillbook.Web.Request{path: ["skills"], base: "/admin", query: "q=a+b"}
      iex> Skillbook.Web.Request.query(request)
      %{"q" => "a b"}
      iex> Skillbook.Web.Request.path(request, ["skills", "é/x"], tag: "mail", cursor: nil)
      "/admin/skills/%C3%A9%2Fx?tag=mail"
  """

  alias Skillbook.Support.JSON
  alias Skillbook.Web.{Access, Caller, Form, Upload}

  @type t :: %__MODULE__{
          method: String.t(),
          scheme: :http | :https,
          host: String.t() | nil,
          path: [String.t()],
          base: String.t(),
          query: String.t(),
          headers: [{String.t(), String.t()}],
          body: binary(),
          peer: :inet.ip_address() | :unix | nil,
          fields: fields() | nil,
          caller: Caller.t() | nil
        }

  defstruct [
    :host,
    :peer,
    :fields,
    :caller,
    method: "GET",
    scheme: :http,
    path: [],
    base: "",
    query: "",
    headers: [],
    body: ""
  ]

  @typedoc "The fields of a form or a query. A name that ends in `[]` has a list."
  @type fields :: %{String.t() => String.t() | Upload.t() | [String.t() | Upload.t()]}

  @doc """
  Returns the value of a header, or `nil`. Values of a repeated header are joined by `", "`.

      iex> request = %Skillbook.Web.Request{headers: [{"accept", "text/html"}]}
      iex> {Skillbook.Web.Request.header(request, "accept"),
      ...>  Skillbook.Web.Request.header(request, "origin")}
      {"text/html", nil}
  """
  @spec header(t(), String.t()) :: String.t() | nil
  def header(%__MODULE__{headers: headers}, name) do
    case for {^name, value} <- headers, do: value do
      [] -> nil
      values -> Enum.join(values, ", ")
    end
  end

  @doc """
  Returns the fields of the query. A field that is there twice has its last value; one whose name
  ends in `[]` has the list of its values, under the name without the brackets.

  A query that cannot be read has no fields; `Skillbook.Web.call/2` has refused it.

      iex> Skillbook.Web.Request.query(%Skillbook.Web.Request{query: "a=1&a=2&t[]=x&t[]=y"})
      %{"a" => "2", "t" => ["x", "y"]}
  """
  @spec query(t()) :: %{String.t() => String.t() | [String.t()]}
  # Each link of a page asks.
  def query(%__MODULE__{query: ""}), do: %{}

  def query(%__MODULE__{query: query}) do
    case Form.urlencoded(query) do
      {:ok, fields} -> fields
      :error -> %{}
    end
  end

  @doc """
  Returns the fields of a form in the body, urlencoded or multipart. Files are
  `Skillbook.Web.Upload`s.

      iex> request = %Skillbook.Web.Request{
      ...>   headers: [{"content-type", "application/x-www-form-urlencoded"}],
      ...>   body: "name=tea&text=Boil+water"
      ...> }
      iex> Skillbook.Web.Request.form(request)
      {:ok, %{"name" => "tea", "text" => "Boil water"}}
      iex> Skillbook.Web.Request.form(%{request | headers: []})
      :error
  """
  @spec form(t()) :: {:ok, fields()} | :error
  def form(%__MODULE__{fields: %{} = fields}), do: {:ok, fields}

  def form(%__MODULE__{} = request),
    do: Form.read(header(request, "content-type") || "", request.body)

  @doc """
  Decodes a body of JSON.

      iex> Skillbook.Web.Request.json(%Skillbook.Web.Request{body: ~s({"a": 1})})
      {:ok, %{"a" => 1}}
  """
  @spec json(t()) :: {:ok, term()} | {:error, Skillbook.JSONError.t()}
  def json(%__MODULE__{body: body}), do: JSON.decode(body)

  @doc """
  Returns the value of a cookie, or `nil`. Of cookies with one name, the first counts, as the one
  with the longest path.

      iex> request = %Skillbook.Web.Request{headers: [{"cookie", "a=1; b=2"}]}
      iex> Skillbook.Web.Request.cookie(request, "b")
      "2"
  """
  @spec cookie(t(), String.t()) :: String.t() | nil
  def cookie(%__MODULE__{headers: headers}, name) do
    # HTTP/2 may split the header.
    Enum.find_value(headers, fn
      {"cookie", value} -> value |> String.split(";") |> Enum.find_value(&cookie_of(&1, name))
      _other -> nil
    end)
  end

  defp cookie_of(pair, name) do
    case pair |> String.trim() |> String.split("=", parts: 2) do
      [^name, value] -> value
      _other -> nil
    end
  end

  @doc """
  Whether the client wants JSON: by `?format=json`, by a header `accept` that names it and not
  HTML, or because it asks the API.

      iex> Skillbook.Web.Request.wants_json?(%Skillbook.Web.Request{query: "format=json"})
      true
  """
  @spec wants_json?(t()) :: boolean()
  def wants_json?(%__MODULE__{path: ["api" | _]}), do: true

  def wants_json?(%__MODULE__{} = request) do
    accept = header(request, "accept") || ""

    case query(request) do
      %{"format" => format} -> format == "json"
      _other -> accept =~ "application/json" and not (accept =~ "text/html")
    end
  end

  @doc """
  Returns a link below the base, with the segments and the fields of a query encoded. Fields with
  `nil` are left out.
  """
  @spec path(t(), [String.t()], Enumerable.t()) :: String.t()
  def path(%__MODULE__{base: base}, segments, query \\ []) do
    path = base <> "/" <> Enum.map_join(segments, "/", &encode/1)

    case for {name, value} <- query, value != nil, do: {name, value} do
      [] -> path
      fields -> path <> "?" <> URI.encode_query(fields)
    end
  end

  defp encode(segment),
    do: if(plain?(segment), do: segment, else: URI.encode(segment, &segment?/1))

  defp plain?(<<char, rest::bits>>) when char in ?a..?z or char in ?0..?9 or char in [?., ?-, ?_],
    do: plain?(rest)

  defp plain?(rest), do: rest == ""

  @doc """
  Returns an absolute link below the option `:url`, or below the host of the request. In an
  application with Plug the base is where the plug is mounted.

      iex> request = %Skillbook.Web.Request{host: "127.0.0.1:4004"}
      iex> web = Skillbook.Web.new!(book: MyApp.Skills)
      iex> Skillbook.Web.Request.url(request, web, ["mcp"])
      "http://127.0.0.1:4004/mcp"
  """
  @spec url(t(), Skillbook.Web.t(), [String.t()]) :: String.t()
  def url(%__MODULE__{} = request, web, segments) do
    case web.url do
      nil -> "#{request.scheme}://#{request.host}#{path(request, segments)}"
      url when request.base != "" -> "#{Access.origin(url)}#{path(request, segments)}"
      url -> String.trim_trailing(url, "/") <> path(request, segments)
    end
  end

  # The unreserved characters: a client must not read `..` or `;` in a name as more than a name.
  defp segment?(character), do: URI.char_unreserved?(character)

  # Headers, the query, the body and links in the path may be secret.
  defimpl Inspect do
    def inspect(request, _options), do: "#Skillbook.Web.Request<#{request.method}>"
  end
end
