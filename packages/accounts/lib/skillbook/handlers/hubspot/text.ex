defmodule Skillbook.Handlers.HubSpot.Text do
  @moduledoc false
  # The texts of notes and tasks, which are HTML at HubSpot.

  alias Skillbook.Support.Number

  @doc ~S"""
  Plain text as HTML that shows it unchanged.

      iex> Skillbook.Handlers.HubSpot.Text.html("1 < 2\n& so")
      "1 &lt; 2<br>&amp; so"
  """
  @spec html(String.t()) :: String.t()
  def html(text) do
    text
    |> String.replace("&", "&amp;")
    |> String.replace("<", "&lt;")
    |> String.replace(">", "&gt;")
    |> String.replace(["\r\n", "\n"], "<br>")
  end

  @breaks ~w(br p div li tr h1 h2 h3 h4 h5 h6 blockquote)

  @doc ~S"""
  The text of HTML, in time that grows with its length.

      iex> Skillbook.Handlers.HubSpot.Text.plain("<div><p>1 &lt; 2</p><b>so</b>&#8364;</div>")
      "1 < 2\nso€"
  """
  @spec plain(String.t()) :: String.t()
  def plain(html) do
    html
    |> tags([])
    |> IO.iodata_to_binary()
    |> String.replace(~r/[ \t]*\n[ \t]*/, "\n")
    |> String.replace(~r/\n{3,}/, "\n\n")
    |> String.trim()
    |> entities()
  end

  defp tags(html, done) do
    with [text, rest] <- :binary.split(html, "<"),
         [tag, rest] <- :binary.split(rest, ">") do
      tags(rest, [done, text, break(tag)])
    else
      _ -> [done, html]
    end
  end

  defp break(tag) do
    name = tag |> binary_part(0, min(byte_size(tag), 16)) |> String.trim_leading("/")
    [name | _] = String.split(String.downcase(name), [" ", "/", "\n", "\t"], parts: 2)
    if name in @breaks, do: "\n", else: ""
  end

  @entities %{
    "amp" => "&",
    "lt" => "<",
    "gt" => ">",
    "quot" => "\"",
    "apos" => "'",
    "nbsp" => " "
  }

  defp entities(text) do
    Regex.replace(~r/&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-z]{2,4}));/, text, fn
      whole, decimal, hexadecimal, name ->
        cond do
          name != "" -> Map.get(@entities, name, whole)
          decimal != "" -> character(Number.integer!(decimal), whole)
          true -> character(Number.integer!(hexadecimal, 16), whole)
        end
    end)
  end

  defp character(code, _whole) when code in 1..0xD7FF or code in 0xE000..0x10FFFF,
    do: <<code::utf8>>

  defp character(_code, whole), do: whole
end
