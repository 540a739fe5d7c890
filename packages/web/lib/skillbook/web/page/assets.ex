defmodule Skillbook.Web.Page.Assets do
  @moduledoc false
  # The style, the script and the icon of the page. They are part of this module, so a release
  # needs no files. Their names have a digest of their content, so browsers keep them for good.

  alias Skillbook.Web.{Request, Response}
  alias Skillbook.Web.Page.Layout

  @folder Path.expand("../../../../priv/web", __DIR__)
  @types [
    {"app.css", "text/css; charset=utf-8"},
    {"app.js", "text/javascript; charset=utf-8"},
    {"icon.svg", "image/svg+xml"}
  ]

  for {name, type} <- @types do
    path = Path.join(@folder, name)
    @external_resource path
    data = File.read!(path)
    digest = :sha256 |> :crypto.hash(data) |> binary_part(0, 8) |> Base.encode16(case: :lower)
    file = Path.rootname(name) <> "-" <> digest <> Path.extname(name)

    defp file(unquote(name)), do: unquote(file)
    defp fetch(unquote(file)), do: {:ok, unquote(type), unquote(data)}
  end

  defp fetch(_file), do: :error

  @doc "The address of an asset, such as `app.css`."
  @spec path(Request.t(), String.t()) :: String.t()
  def path(request, name), do: Request.path(request, ["assets", file(name)])

  @doc "Answers with an asset."
  def show(request, %{file: file}) do
    case fetch(file) do
      {:ok, type, data} ->
        %Response{body: data}
        |> Response.put_header("content-type", type)
        |> Response.put_header("cache-control", "public, max-age=31536000, immutable")

      :error ->
        Layout.not_found(request)
    end
  end
end
