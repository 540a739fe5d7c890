defmodule Skillbook.Web.Markdown do
  @moduledoc false
  # Markdown of documents as HTML for the page. The rules are in
  # native/skillbook_core/src/markdown.rs: a fixed set of tags, no HTML of the text, links to
  # http, https and mailto, images as links, headings below the page's title, hidden characters by
  # their codes, and a limit of size.

  alias Skillbook.Native
  alias Skillbook.Web.Html

  @doc ~S"""
  The HTML of a text. Relative links lead below `files`, the address of a folder; without one they
  are only text. A text that is too long ends with a note.

      iex> {:safe, html} = Skillbook.Web.Markdown.html("# Tea\n<b>Boil</b> [water](javascript:x)")
      iex> IO.iodata_to_binary(html)
      "<h2>Tea</h2>\n<p>&lt;b&gt;Boil&lt;/b&gt; water</p>\n"
  """
  @spec html(binary(), String.t()) :: Html.safe()
  def html(text, files \\ "") do
    {html, whole?} = text |> Html.valid() |> Native.markdown_html(files)

    rest =
      unless whole?,
        do: Html.html(Html.tag(:p, [class: "notice"], "The rest is too long to be shown."))

    {:safe, [html | rest || []]}
  end
end
