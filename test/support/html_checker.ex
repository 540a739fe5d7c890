defmodule Skillbook.Test.HtmlChecker do
  @moduledoc false
  # A strict reader of HTML, for pages of our own: stricter than the standard, so that every
  # browser reads a page that it accepts in the same way. Returns the problems of a page as texts.

  alias Skillbook.Support.Hidden

  @void ~w(area base br col embed hr img input link meta source track wbr)
  @known @void ++
           ~w(a aside blockquote body button caption circle code dd del desc details dialog div
              dl dt em fieldset figcaption figure footer form g h1 h2 h3 h4 h5 h6 head header
              html ins label legend li line main mark meter nav noscript ol option output p path
              pre rect script section select small span strong summary svg table tbody td text
              textarea th thead time title tr ul polyline polygon)
  # Elements that cannot stand in a paragraph or a heading.
  @blocks ~w(aside blockquote details div dl fieldset figure footer form h1 h2 h3 h4 h5 h6 header
             hr main nav ol p pre section table ul)
  @lines ~w(p h1 h2 h3 h4 h5 h6 summary caption dt legend label button)
  @parents %{
    "li" => ~w(ul ol),
    "tr" => ~w(table thead tbody),
    "td" => ~w(tr),
    "th" => ~w(tr),
    "thead" => ~w(table),
    "tbody" => ~w(table),
    "caption" => ~w(table),
    "option" => ~w(select),
    "dt" => ~w(dl div),
    "dd" => ~w(dl div),
    "summary" => ~w(details),
    "figcaption" => ~w(figure),
    "legend" => ~w(fieldset)
  }
  @only %{
    "ul" => ~w(li),
    "ol" => ~w(li),
    "table" => ~w(caption thead tbody tr),
    "thead" => ~w(tr),
    "tbody" => ~w(tr),
    "tr" => ~w(td th),
    "select" => ~w(option),
    "dl" => ~w(div dt dd)
  }
  @entities ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"]
  @name ~r/\A[a-z][a-z0-9-]*/
  @references ~w(for aria-labelledby aria-describedby aria-controls)

  @doc "The problems of a whole page."
  @spec page(binary()) :: [String.t()]
  def page(html) do
    {tree, problems} = parse(html)
    problems ++ Enum.uniq(nodes(tree) |> whole()) ++ common(tree)
  end

  @doc "The problems of a part of a page."
  @spec part(binary()) :: [String.t()]
  def part(html) do
    {tree, problems} = parse(html)
    problems ++ common(tree)
  end

  @doc "All elements of a page or of an element, as `{name, attributes, children}`, in its order."
  @spec elements(binary() | tuple()) :: [{String.t(), %{String.t() => String.t()}, list()}]
  def elements({_name, _attributes, children}), do: nodes(children)
  def elements(html), do: html |> parse() |> elem(0) |> nodes()

  @doc "The text of an element."
  @spec text(term()) :: String.t()
  def text({_name, _attributes, children}), do: Enum.map_join(children, &text/1)
  def text(text) when is_binary(text), do: unescape(text)

  defp unescape(text) do
    Enum.reduce(Enum.zip(tl(@entities), ["<", ">", "\"", "'"]), text, fn {entity, char}, text ->
      String.replace(text, entity, char)
    end)
    |> String.replace("&amp;", "&")
  end

  # Reading

  defp parse(html) do
    problems = if String.valid?(html), do: [], else: ["not UTF-8"]
    rest = String.replace_prefix(html, "<!doctype html>\n", "")
    read(rest, [{"", %{}, []}], problems)
  catch
    {:broken, text} -> {[], [text]}
  end

  # The open elements, the innermost first, each with its children so far in reverse.
  defp read("", [{"", _, children}], problems), do: {Enum.reverse(children), problems}
  defp read("", [{name, _, _} | _], _problems), do: throw({:broken, "<#{name}> is not closed"})

  defp read(
         "</" <> rest,
         [{name, attributes, children}, {outer, outer_attributes, before} | open],
         problems
       ) do
    case String.split(rest, ">", parts: 2) do
      [^name, rest] ->
        element = {name, attributes, Enum.reverse(children)}
        read(rest, [{outer, outer_attributes, [element | before]} | open], problems)

      [other | _] ->
        throw({:broken, "</#{String.slice(other, 0, 20)}> closes <#{name}>"})
    end
  end

  defp read("<" <> rest, [{inside, _, _} = parent | open] = stack, problems) do
    case Regex.run(@name, rest) do
      [name] ->
        {attributes, rest} =
          attributes(
            binary_part(rest, byte_size(name), byte_size(rest) - byte_size(name)),
            %{},
            name
          )

        problems = problems ++ place(name, inside, Enum.map(stack, &elem(&1, 0)))

        if name in @void do
          {parent_name, parent_attributes, children} = parent

          read(
            rest,
            [{parent_name, parent_attributes, [{name, attributes, []} | children]} | open],
            problems
          )
        else
          read(rest, [{name, attributes, []} | stack], problems)
        end

      nil ->
        throw({:broken, "a bare < before #{inspect(String.slice(rest, 0, 20))}"})
    end
  end

  defp read(rest, [{name, attributes, children} | open], problems) do
    {text, rest} =
      case :binary.match(rest, "<") do
        {at, 1} -> {binary_part(rest, 0, at), binary_part(rest, at, byte_size(rest) - at)}
        :nomatch -> {rest, ""}
      end

    problems = problems ++ text_problems(text, name)
    read(rest, [{name, attributes, [text | children]} | open], problems)
  end

  defp text_problems(text, inside) do
    [
      if(bare?(text), do: "a bare & or > in #{inspect(String.slice(text, 0, 40))}"),
      if(@only[inside] && String.trim(text) != "", do: "text in <#{inside}>"),
      if(inside != "textarea" and String.valid?(text) and Hidden.any?(text),
        do: "a hidden character in <#{inside}>"
      )
    ]
    |> Enum.filter(& &1)
  end

  defp bare?(text), do: text |> String.replace(@entities, "") |> String.contains?(["&", ">"])

  defp attributes(">" <> rest, found, _name), do: {found, rest}

  defp attributes(" " <> rest, found, name) do
    with [attribute] <- Regex.run(~r/\A[a-zA-Z][a-zA-Z0-9-]*/, rest),
         rest = binary_part(rest, byte_size(attribute), byte_size(rest) - byte_size(attribute)),
         {value, rest} <- value(rest),
         false <- is_map_key(found, attribute) do
      attributes(rest, Map.put(found, attribute, value), name)
    else
      _broken -> throw({:broken, "<#{name}> has an attribute that is twice there or unreadable"})
    end
  end

  defp attributes(_rest, _found, name), do: throw({:broken, "<#{name}> is not ended"})

  defp value("=\"" <> rest) do
    with [value, rest] <- String.split(rest, "\"", parts: 2),
         false <- String.contains?(value, ["<", ">", "'"]) or bare?(value) do
      {unescape(value), rest}
    else
      _broken -> :error
    end
  end

  defp value(rest), do: {"", rest}

  defp place(name, inside, open) do
    [
      if(name not in @known, do: "<#{name}> is unknown"),
      if(@parents[name] && inside not in @parents[name], do: "<#{name}> in <#{inside}>"),
      if(@only[inside] && name not in @only[inside], do: "<#{name}> in <#{inside}>"),
      if(inside in @lines and name in @blocks, do: "<#{name}> in <#{inside}>"),
      if(name in ["a", "button"] and Enum.any?(open, &(&1 in ["a", "button"])),
        do: "<#{name}> in another link or button"
      ),
      if(name == "form" and "form" in open, do: "<form> in <form>"),
      if(name == "p" and "p" in open, do: "<p> in <p>")
    ]
    |> Enum.filter(& &1)
  end

  defp nodes(tree) do
    Enum.flat_map(tree, fn
      {_name, _attributes, children} = element -> [element | nodes(children)]
      _text -> []
    end)
  end

  # Rules

  defp whole(elements) do
    count = fn name -> Enum.count(elements, &(elem(&1, 0) == name)) end
    titles = for {"title", _, _} = element <- elements, do: String.trim(text(element))
    lang = for {"html", %{"lang" => lang}, _} <- elements, do: lang
    links = for {"a", %{"class" => "skip", "href" => href}, _} <- elements, do: href
    # A page without navigation has nothing to skip.
    skipping = if count.("nav") == 0, do: [], else: ["#main"]

    [
      if(lang != ["en"], do: "no lang"),
      if(titles in [[], [""]], do: "no title"),
      if(count.("h1") != 1, do: "#{count.("h1")} h1"),
      if(count.("main") != 1, do: "#{count.("main")} main"),
      if(links != skipping, do: "no skip link")
      | levels(elements)
    ]
    |> Enum.filter(& &1)
  end

  # Headings of a rendered document are its author's.
  defp levels(elements) do
    rendered =
      for {"div", %{"class" => "rendered" <> _}, children} <- elements,
          {name, _, _} = heading <- nodes(children),
          name =~ ~r/\Ah[1-6]\z/,
          do: heading

    levels =
      for {"h" <> level, _, _} <- elements -- rendered,
          level =~ ~r/\A[1-6]\z/,
          do: String.to_integer(level)

    for {before, level} <- Enum.zip([0 | levels], levels), level > before + 1 do
      "h#{level} after h#{before}"
    end
  end

  defp common(tree) do
    elements = nodes(tree)
    ids = for {_, %{"id" => id}, _} <- elements, do: id

    twice(ids) ++
      references(elements, ids) ++
      Enum.flat_map(elements, &element(&1, elements)) ++
      columns(elements)
  end

  defp twice(ids),
    do: for(id <- Enum.uniq(ids -- Enum.uniq(ids)), do: "the id #{id} is there twice")

  defp references(elements, ids) do
    for {name, attributes, _} <- elements,
        attribute <- @references,
        id <- String.split(attributes[attribute] || ""),
        id not in ids,
        do: "<#{name} #{attribute}> leads to no id #{id}"
  end

  defp columns(elements) do
    for {"table", _, _} = table <- elements,
        rows =
          for({"tr", _, cells} <- nodes([table]), do: length(for {_, _, _} = c <- cells, do: c)),
        length(Enum.uniq(rows)) > 1,
        do: "rows of different lengths in a table"
  end

  defp element({name, attributes, children} = element, elements) do
    forbidden =
      for {attribute, _} <- attributes,
          attribute in ["style", "srcdoc", "ping", "target"] or
            String.starts_with?(attribute, "on"),
          do: "<#{name} #{attribute}>"

    addresses =
      for attribute <- ["href", "src", "action", "formaction"],
          address = attributes[attribute],
          not address?(name, address),
          do: "<#{name} #{attribute}> leads to #{inspect(address)}"

    hidden =
      for attribute <- ["title", "aria-label", "placeholder", "alt"],
          Hidden.any?(attributes[attribute] || ""),
          do: "a hidden character in <#{name} #{attribute}>"

    forbidden ++ addresses ++ hidden ++ rules(name, attributes, children, element, elements)
  end

  # Scripts and styles come from this server.
  defp address?(name, address) when name in ["script", "link"],
    do: address =~ ~r{\A/(?![/\\])} and not (address =~ ~r{[\s<>"\\]})

  defp address?(_name, address) do
    address =~ ~r{\A(?:https?://|HTTPS?://|(?i:mailto:)|#|/(?![/\\]))} and
      not (address =~ ~r{[\x00-\x20\\]})
  end

  defp rules("script", attributes, children, _element, _elements) do
    if is_map_key(attributes, "src") and Enum.join(children) == "",
      do: [],
      else: ["<script> with text or without src"]
  end

  defp rules("style", _attributes, _children, _element, _elements), do: ["<style>"]

  defp rules(name, attributes, _children, _element, elements)
       when name in ["input", "select", "textarea"] do
    type = attributes["type"]

    labelled? =
      attributes["aria-label"] != nil or attributes["aria-labelledby"] != nil or
        Enum.any?(
          elements,
          &match?({"label", %{"for" => for}, _} when for == :erlang.map_get("id", attributes), &1)
        )

    if type in ["hidden", "submit"] or labelled?, do: [], else: ["<#{name}> without a label"]
  rescue
    _no_id -> ["<#{name}> without a label"]
  end

  defp rules(name, attributes, _children, element, _elements) when name in ["a", "button"] do
    text = attributes["aria-label"] || text(element)
    if String.trim(text) == "", do: ["<#{name}> without a text"], else: []
  end

  defp rules("svg", attributes, _children, _element, _elements) do
    if attributes["role"] == "img" or attributes["aria-hidden"] == "true",
      do: [],
      else: ["<svg> without role=\"img\""]
  end

  defp rules("img", attributes, _children, _element, _elements),
    do: if(is_map_key(attributes, "alt"), do: [], else: ["<img> without alt"])

  defp rules("form", %{"method" => method}, _children, _element, _elements)
       when method not in ["get", "post"],
       do: ["<form method=#{method}>"]

  defp rules(_name, _attributes, _children, _element, _elements), do: []
end
