# The documented part of Plug 1.16 that Skillbook calls. Everything else is left out, so that
# nothing undocumented is used.

defmodule Plug.Conn.Unfetched do
  @moduledoc false
  defstruct [:aspect]
end

defmodule Plug.Conn do
  @moduledoc false
  defstruct [
    :method,
    :status,
    :resp_body,
    path_info: [],
    script_name: [],
    scheme: :http,
    host: "www.example.com",
    port: 80,
    remote_ip: {127, 0, 0, 1},
    body_params: %Plug.Conn.Unfetched{aspect: :body_params},
    query_string: "",
    query_params: %{},
    assigns: %{},
    req_headers: [],
    resp_headers: [{"cache-control", "max-age=0, private, must-revalidate"}]
  ]

  # `a[]=1&a[]=2` is a list.
  def fetch_query_params(conn) do
    parameters =
      for {name, value} <- URI.query_decoder(conn.query_string), reduce: %{} do
        parameters ->
          case String.trim_trailing(name, "[]") do
            ^name -> Map.put(parameters, name, value)
            name -> Map.update(parameters, name, [value], &(&1 ++ [value]))
          end
      end

    %{conn | query_params: parameters}
  end

  def put_resp_header(conn, name, value) do
    if name != String.downcase(name) or value =~ ~r/[\r\n\0]/, do: raise(ArgumentError, name)
    %{conn | resp_headers: List.keystore(conn.resp_headers, name, 0, {name, value})}
  end

  def send_resp(%{status: nil} = conn, status, body),
    do: %{conn | status: status, resp_body: body}

  # For tests, `assigns.body` is the body that has not been read, and `assigns.client` the process
  # that gets the parts; the client that has gone is a dead one.
  def read_body(conn, options) do
    body = conn.assigns[:body] || ""
    conn = %{conn | assigns: Map.delete(conn.assigns, :body)}

    cond do
      body == :timeout -> {:error, :timeout}
      byte_size(body) > options[:length] -> {:more, binary_part(body, 0, 1), conn}
      true -> {:ok, body, conn}
    end
  end

  def send_chunked(%{status: nil} = conn, status), do: %{conn | status: status, resp_body: []}

  # Only the connection of the last part may be used.
  def chunk(%{resp_body: parts} = conn, data) when is_list(parts) do
    if Process.alive?(conn.assigns.client) do
      send(conn.assigns.client, {:chunk, length(parts), IO.iodata_to_binary(data)})
      {:ok, %{conn | resp_body: [data | parts]}}
    else
      {:error, :closed}
    end
  end
end
