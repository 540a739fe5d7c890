defmodule Skillbook.Web.Response do
  @moduledoc """
  The answer to a request.

  ## Fields

    * `:status` - such as `200`
    * `:headers` - pairs of a lower-case name and a value
    * `:body` - iodata, or `{:stream, fun}` with a function that gets `write` and calls it with
      each part. `write` takes iodata and returns `:ok` when the client has room for more, or
      `{:error, :closed}`. The function runs in a process of the connection, which may receive
      messages; it is killed when the client has gone

  ## Examples

      iex> Skillbook.Web.Response.json(200, %{skills: []})
      %Skillbook.Web.Response{
        status: 200,
        headers: [{"content-type", "application/json"}],
        body: ~s({"skills":[]})
      }
  """

  alias Skillbook.Support.JSON
  alias Skillbook.Web.Request

  @type write :: (iodata() -> :ok | {:error, :closed})
  @type t :: %__MODULE__{
          status: 100..599,
          headers: [{String.t(), String.t()}],
          body: iodata() | {:stream, (write() -> any())}
        }

  defstruct status: 200, headers: [], body: ""

  @typedoc "Sends an event: its name or `nil`, and text or a term that becomes JSON."
  @type send_event :: (String.t() | nil, String.t() | term() -> :ok)

  # Milliseconds without an event after which a comment is sent, so that proxies keep the stream
  # open and a client that has gone is noticed.
  @heartbeat 15_000

  @doc "An answer of HTML. `Skillbook.Web.call/2` adds the Content-Security-Policy."
  @spec html(100..599, iodata()) :: t()
  def html(status, body), do: typed(status, "text/html; charset=utf-8", body)

  @doc "An answer of plain text."
  @spec text(100..599, iodata()) :: t()
  def text(status, body), do: typed(status, "text/plain; charset=utf-8", body)

  @doc "An answer of JSON."
  @spec json(100..599, term()) :: t()
  def json(status, term), do: typed(status, "application/json", JSON.encode(term))

  defp typed(status, type, body),
    do: %__MODULE__{status: status, headers: [{"content-type", type}], body: body}

  @doc """
  Sends the client elsewhere. `303` follows a form that has been taken.

      iex> Skillbook.Web.Response.redirect(303, "/skills").headers
      [{"location", "/skills"}]
  """
  @spec redirect(300..399, String.t()) :: t()
  def redirect(status, location),
    do: put_header(%__MODULE__{status: status}, "location", location)

  @doc """
  An error, as JSON `{"error": text}` for a client that wants it, else as text.

      iex> request = %Skillbook.Web.Request{query: "format=json"}
      iex> Skillbook.Web.Response.error(request, 404, "Not found.").body
      ~s({"error":"Not found."})
  """
  @spec error(Request.t(), 400..599, String.t()) :: t()
  def error(%Request{} = request, status, text) do
    if Request.wants_json?(request),
      do: json(status, %{error: text}),
      else: text(status, [text, "\n"])
  end

  @doc """
  Sets a header. Raises `ArgumentError` for a line break, which would begin another header.

      iex> response = Skillbook.Web.Response.text(200, "hi")
      iex> Skillbook.Web.Response.put_header(response, "etag", ~s("1")).headers
      [{"etag", ~s("1")}, {"content-type", "text/plain; charset=utf-8"}]
  """
  @spec put_header(t(), String.t(), String.t()) :: t()
  def put_header(%__MODULE__{headers: headers} = response, name, value) do
    # A pattern would stay on a scheduler for some 50 ns for each byte.
    if String.contains?(value, ["\r", "\n", "\0"]) or not String.valid?(value) do
      raise ArgumentError,
            "expected text without a line break as the header #{name}, got: #{inspect(value)}"
    end

    %{response | headers: [{name, value} | List.keydelete(headers, name, 0)]}
  end

  @doc """
  Says that the response depends on headers of the request, beside those of before.

      iex> response = Skillbook.Web.Response.vary(%Skillbook.Web.Response{}, "cookie")
      iex> Skillbook.Web.Response.vary(response, "origin").headers
      [{"vary", "cookie, origin"}]
  """
  @spec vary(t(), String.t()) :: t()
  def vary(%__MODULE__{headers: headers} = response, names) do
    case List.keyfind(headers, "vary", 0) do
      nil -> put_header(response, "vary", names)
      {_name, others} -> put_header(response, "vary", "#{others}, #{names}")
    end
  end

  @doc """
  Lets the caller alone keep an answer, and ask each time whether it still holds, by its `etag`.
  Errors stay as they are.

  Without an `etag` it gets one of its body, a weak one: proxies and servers may compress it then.
  `Skillbook.Web.call/2` answers 304 to a client that has it already.

      iex> response = Skillbook.Web.Response.private(Skillbook.Web.Response.text(200, "hi"))
      iex> List.keyfind(response.headers, "cache-control", 0)
      {"cache-control", "private, no-cache"}
  """
  @spec private(t()) :: t()
  def private(%__MODULE__{status: 200} = response) do
    response
    |> put_etag()
    |> put_header("cache-control", "private, no-cache")
    |> vary("authorization, cookie")
  end

  def private(response), do: response

  defp put_etag(response) do
    if List.keymember?(response.headers, "etag", 0) do
      response
    else
      hash = :sha256 |> :crypto.hash(response.body) |> Base.url_encode64(padding: false)
      put_header(response, "etag", ~s(W/"#{hash}"))
    end
  end

  @doc false
  # The answer for a client that may have it already, by its etag (RFC 9110, 13.1.2).
  @spec conditional(t(), Request.t()) :: t()
  def conditional(%__MODULE__{status: 200} = response, %Request{method: "GET"} = request) do
    with {_name, etag} <- List.keyfind(response.headers, "etag", 0),
         given when given != nil <- Request.header(request, "if-none-match"),
         true <- matches?(given, etag) do
      headers = List.keydelete(response.headers, "content-type", 0)
      %{response | status: 304, headers: headers, body: ""}
    else
      _none -> response
    end
  end

  def conditional(response, _request), do: response

  # A list of tags, each in quotes, which no tag has in it. Weak ones are compared as strong ones.
  defp matches?(given, "W/" <> etag), do: matches?(given, etag)
  defp matches?(given, etag), do: String.contains?(given, etag) or String.trim(given) == "*"

  @doc """
  A stream of server-sent events.

  `start` runs in the process of the connection and gets a function that sends an event. It may
  subscribe to messages and return a function, which then gets every message of the process until
  the client has gone or it returns `:done`; with any other value the stream ends. While nothing
  is sent, a comment goes out every 15 seconds.

      Response.events(fn send_event ->
        :ok = Skillbook.subscribe(MyApp.Skills)
        send_event.("hello", %{at: 1})
        fn message -> with {:changed, names} <- message, do: send_event.("skills", names) end
      end)
  """
  @spec events((send_event() -> (term() -> any()) | any())) :: t()
  def events(start) when is_function(start, 1) do
    headers = [{"content-type", "text/event-stream"}, {"x-accel-buffering", "no"}]
    %__MODULE__{headers: headers, body: {:stream, &stream_events(&1, start)}}
  end

  # A send to a client that has gone ends the stream, also in the middle of a handler.
  defp stream_events(write, start) do
    closed = make_ref()
    write = fn data -> with {:error, :closed} <- write.(data), do: throw(closed) end
    send_event = fn name, data -> write.(event(name, data)) end

    try do
      write.(": \n\n")
      listen(start.(send_event), write, deadline())
    catch
      ^closed -> :ok
    end
  end

  defp listen(handle, write, deadline) when is_function(handle, 1) do
    receive do
      message ->
        cond do
          handle.(message) == :done -> :ok
          now() >= deadline -> beat(handle, write)
          true -> listen(handle, write, deadline)
        end
    after
      max(deadline - now(), 0) -> beat(handle, write)
    end
  end

  defp listen(_ended, _write, _deadline), do: :ok

  defp beat(handle, write) do
    write.(": \n\n")
    listen(handle, write, deadline())
  end

  defp deadline, do: now() + @heartbeat
  defp now, do: System.monotonic_time(:millisecond)

  defp event(name, data) do
    data = if is_binary(data), do: data, else: JSON.encode(data)
    [name(name), for(line <- lines(data), do: ["data: ", line, "\n"]), "\n"]
  end

  defp name(nil), do: []

  defp name(name) do
    if name =~ ~r/[\r\n]/, do: raise(ArgumentError, "expected one line as the name of an event")
    ["event: ", name, "\n"]
  end

  defp lines(data), do: String.split(data, ["\r\n", "\r", "\n"])

  # A cookie is a secret.
  defimpl Inspect do
    def inspect(response, options) do
      headers =
        for {name, value} <- response.headers,
            do: {name, if(name == "set-cookie", do: "…", else: value)}

      Inspect.Any.inspect(%{response | headers: headers}, options)
    end
  end
end
