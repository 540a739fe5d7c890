defmodule Skillbook.Web.Html do
  @moduledoc false
  # Builds HTML. Texts are always escaped; only `{:safe, iodata}`, which the functions of this
  # module and `Skillbook.Web.Markdown` return, is not.
  #
  # There is no template language: a page is a tree of calls, so no text can get past the
  # escaping. Event handlers, inline styles and scripts in a page raise, and so do addresses with
  # another scheme than http, https or mailto.
  #
  # Hidden characters of texts and of labels are shown by their codes. Values of form fields keep
  # them, since a form must send back the text that it got.

  alias Skillbook.Support.Hidden

  @type safe :: {:safe, iodata()}
  @type content :: safe() | String.t() | integer() | float() | nil | false | [content()]

  @void ~w(area base br col embed hr img input link meta source track wbr)a
  # Their text is a value that the browser sends back.
  @fields ~w(textarea option)a
  @addresses ~w(href action formaction src cite)a
  @shown ~w(title alt placeholder label content aria_label aria_description)a

  @doc ~S"""
  An element. Attributes that are `nil` or `false` are left out, those that are `true` have no
  value, lists are joined by spaces, and `_` in a name is written `-`.

      iex> import Skillbook.Web.Html
      iex> text(tag(:a, [href: "/a?b&c", class: ["x", nil, "y"], hidden: true], ["<b>", 1]))
      ~S(<a href="/a?b&amp;c" class="x y" hidden>&lt;b&gt;1</a>)
      iex> text(tag(:input, type: "text", value: "\"", aria_label: "Name"))
      ~S(<input type="text" value="&quot;" aria-label="Name">)
  """
  @spec tag(atom(), keyword(), content()) :: safe()
  def tag(name, attributes \\ [], children \\ nil)

  def tag(:script, attributes, nil), do: element(:script, attributes, [])

  def tag(:style, _attributes, _children),
    do: raise(ArgumentError, "expected a class, got an element <style>: styles are in app.css")

  def tag(:script, _attributes, _children),
    do: raise(ArgumentError, "expected a <script> without text: scripts are in app.js")

  def tag(name, attributes, nil) when name in @void,
    do: {:safe, [?<, Atom.to_string(name), attributes(attributes), ?>]}

  # Browsers drop a line break at the beginning.
  def tag(:textarea, attributes, children),
    do: element(:textarea, attributes, [?\n | field_text(children)])

  def tag(name, attributes, children) when name in @fields,
    do: element(name, attributes, field_text(children))

  def tag(name, attributes, children), do: element(name, attributes, html(children))

  defp element(name, attributes, children) do
    name = Atom.to_string(name)
    {:safe, [?<, name, attributes(attributes), ?>, children, "</", name, ?>]}
  end

  @doc "The iodata of content, with its texts escaped."
  @spec html(content()) :: iodata()
  def html({:safe, iodata}), do: iodata
  def html(nothing) when nothing in [nil, false], do: []

  def html(text) when is_binary(text),
    do: if(ordinary?(text), do: text, else: text |> valid() |> Hidden.visible() |> escape())

  def html(number) when is_integer(number), do: Integer.to_string(number)
  def html(number) when is_float(number), do: Float.to_string(number)
  def html(children) when is_list(children), do: Enum.map(children, &html/1)

  @doc "The same as one text."
  @spec text(content()) :: String.t()
  def text(content), do: content |> html() |> IO.iodata_to_binary()

  defp field_text(text) when is_binary(text), do: text |> valid() |> escape()
  defp field_text(nil), do: []

  defp attributes(attributes) do
    for {name, value} <- attributes, value not in [nil, false] do
      spelled = spelled(name)

      if value == true,
        do: [?\s, spelled],
        else: [?\s, spelled, ~S(="), value(name, value), ?"]
    end
  end

  # A page has thousands of these.
  for name <- ~w(action aria_hidden aria_label class cx cy data_column datetime fill for height
                 href id method name r role rx scope tabindex type value width x y x1 x2 y1
                 y2)a do
    spelled = name |> Atom.to_string() |> String.replace("_", "-")
    defp spelled(unquote(name)), do: unquote(spelled)
  end

  defp spelled(name) do
    spelled = name |> Atom.to_string() |> String.replace("_", "-")
    check_name!(spelled)
    spelled
  end

  defp check_name!("on" <> _ = name),
    do: raise(ArgumentError, "expected a listener in app.js, got the attribute #{name}")

  defp check_name!("style"),
    do: raise(ArgumentError, "expected a class, got the attribute style")

  defp check_name!("srcdoc"),
    do: raise(ArgumentError, "expected a page of its own, got the attribute srcdoc")

  defp check_name!(_name), do: :ok

  defp value(name, value) when name in @addresses, do: value |> address!() |> escape()

  defp value(name, list) when is_list(list),
    do: value(name, list |> Enum.filter(& &1) |> Enum.join(" "))

  defp value(_name, number) when is_number(number), do: to_string(number)
  defp value(name, atom) when is_atom(atom), do: value(name, Atom.to_string(atom))

  defp value(name, text) when is_binary(text) do
    cond do
      ordinary?(text) -> text
      name in @shown -> text |> valid() |> Hidden.line() |> escape()
      true -> text |> valid() |> escape()
    end
  end

  defp address!(address) do
    if address?(address),
      do: address,
      else: raise(ArgumentError, "expected a path or an http(s) address, got: #{address}")
  end

  @doc """
  Whether a text is an address that a page may link to: a path, http, https or mailto.

      iex> for text <- ["/a", "?q=x", "https://a.test", "javascript:alert(1)", "//a.test"] do
      ...>   Skillbook.Web.Html.address?(text)
      ...> end
      [true, true, true, false, false]
  """
  @spec address?(String.t()) :: boolean()
  def address?(<<?/, char, _::bits>> = text) when char in ?a..?z,
    do: plain?(text) or special_address?(text)

  def address?(text), do: special_address?(text)

  # Most are paths of these characters.
  defp plain?(<<char, rest::bits>>)
       when char in ?a..?z or char in ?0..?9 or char in [?/, ?., ?-, ?_],
       do: plain?(rest)

  defp plain?(rest), do: rest == ""

  defp special_address?(text) do
    String.valid?(text) and
      text =~ ~r{\A(?:(?i:https?://|mailto:)|[/?#](?![/\\])|data:,\z|\z)} and
      not (text =~ ~r{[\x00-\x20\x7F\\]})
  end

  @doc "The text with the replacement character for each invalid byte."
  @spec valid(binary()) :: String.t()
  def valid(text) do
    # As `String.valid?/1`, in C.
    if is_binary(:unicode.characters_to_binary(text)),
      do: text,
      else: for(part <- parts(text), into: "", do: part)
  end

  defp parts(<<>>), do: []
  defp parts(<<char::utf8, rest::binary>>), do: [<<char::utf8>> | parts(rest)]
  defp parts(<<_, rest::binary>>), do: ["\uFFFD" | parts(rest)]

  # A page has thousands of texts, and nearly all need nothing: ASCII without controls or escapes.
  defp ordinary?(<<char, rest::bits>>)
       when char in 0x20..0x7E and char not in [?&, ?<, ?>, ?", ?'],
       do: ordinary?(rest)

  defp ordinary?(rest), do: rest == ""

  # The others are gone through once. NUL cannot stand in HTML.
  @escapes [
    {?&, "&amp;"},
    {?<, "&lt;"},
    {?>, "&gt;"},
    {?", "&quot;"},
    {?', "&#39;"},
    {0, "\uFFFD"}
  ]

  defp escape(text), do: escape(text, text, 0, 0, [])

  for {char, escaped} <- @escapes do
    defp escape(<<unquote(char), rest::bits>>, text, from, length, done) do
      done = [done, binary_part(text, from, length), unquote(escaped)]
      escape(rest, text, from + length + 1, 0, done)
    end
  end

  defp escape(<<_char, rest::bits>>, text, from, length, done),
    do: escape(rest, text, from, length + 1, done)

  defp escape(<<>>, text, 0, _length, _done), do: text
  defp escape(<<>>, text, from, length, done), do: [done, binary_part(text, from, length)]
end
