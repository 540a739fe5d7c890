defmodule Skillbook.Test.Requests do
  @moduledoc false
  # Sends requests to `Skillbook.Web.call/2` without a server.

  alias Skillbook.Web
  alias Skillbook.Web.{Request, Response}

  @host "127.0.0.1:4004"

  @doc """
  A web of a book that listens on 127.0.0.1:4004, with options of `Skillbook.Web`. Without
  `:authenticate` only requests with `:as` have a caller.
  """
  def web(book, options \\ []) do
    options = Keyword.merge([book: book, authenticate: fn _request -> :error end], options)
    {:ok, web} = options |> Web.new!() |> listen()
    web
  end

  defp listen(web), do: Web.listen(web, {:tcp, {127, 0, 0, 1}, 4004})

  @doc """
  Answers a request, with the body as a binary; a stream is read to its end.

  Options: `:headers`; `:body`; `:form` and `:json` with a body of theirs; `:as` with the id of a
  profile, a profile, or `[profile: id, operator: true]`, that an application would have found;
  `:host`, `:scheme`, `:base` and `:peer`.
  """
  def call(web, method, target, options \\ []) do
    response = respond(web, method, target, options)

    case response.body do
      {:stream, fun} ->
        parent = self()
        ref = make_ref()

        fun.(fn data ->
          send(parent, {ref, IO.iodata_to_binary(data)})
          :ok
        end)

        %{response | body: collect(ref, [])}

      body ->
        %{response | body: IO.iodata_to_binary(body)}
    end
  end

  defp collect(ref, parts) do
    receive do
      {^ref, part} -> collect(ref, [part | parts])
    after
      0 -> parts |> Enum.reverse() |> IO.iodata_to_binary()
    end
  end

  @doc """
  Answers a request by a stream that a process of its own runs. Its parts come as
  `{:part, pid, binary}`, its end as `{:ended, pid}`. Returns the response and the process, which
  ends with the test; `close/1` lets it find the client gone.
  """
  def stream(web, method, target, options \\ []),
    do: stream(respond(web, method, target, options))

  @doc "Runs the stream of a response in the same way."
  def stream(%Response{body: {:stream, fun}} = response) do
    test = self()
    closed = :atomics.new(1, [])

    pid =
      spawn_link(fn ->
        fun.(fn data ->
          if :atomics.get(closed, 1) == 1 do
            {:error, :closed}
          else
            send(test, {:part, self(), IO.iodata_to_binary(data)})
            :ok
          end
        end)

        send(test, {:ended, self()})
      end)

    Process.put({__MODULE__, pid}, closed)
    {response, pid}
  end

  @doc "Lets the client of a stream be gone."
  def close(pid), do: :atomics.put(Process.get({__MODULE__, pid}), 1, 1)

  @doc "The response with its body as it is."
  def respond(web, method, target, options \\ []) do
    Web.call(request(method, target, options), as(web, options[:as]))
  end

  @doc "The request that an adapter would read."
  def request(method, target, options \\ []) do
    {path, query} =
      case String.split(target, "?", parts: 2) do
        [path, query] -> {path, query}
        [path] -> {path, ""}
      end

    {type, body} = body(options)

    %Request{
      method: method,
      scheme: options[:scheme] || :http,
      host: Keyword.get(options, :host, @host),
      base: options[:base] || "",
      path: for(part <- String.split(path, "/"), part != "", do: URI.decode(part)),
      query: query,
      headers: type ++ (options[:headers] || []),
      body: body,
      peer: Keyword.get(options, :peer, {127, 0, 0, 1})
    }
  end

  defp body(options) do
    cond do
      form = options[:form] ->
        {[{"content-type", "application/x-www-form-urlencoded"}], URI.encode_query(form)}

      Keyword.has_key?(options, :json) ->
        {[{"content-type", "application/json"}], Skillbook.Support.JSON.encode(options[:json])}

      true ->
        {[], options[:body] || ""}
    end
  end

  defp as(web, nil), do: web
  defp as(web, options) when is_list(options), do: as(web, options[:profile], options)
  defp as(web, profile), do: as(web, profile, [])

  defp as(web, profile, options) do
    operator = [operator: options[:operator] == true]
    %{web | authenticate: fn _request -> {:ok, profile, operator} end}
  end

  @doc "The value of a header of a response, or `nil`."
  def header(%Response{headers: headers}, name) do
    with {^name, value} <- List.keyfind(headers, name, 0), do: value
  end
end
