defmodule Skillbook.GBNF do
  @moduledoc false
  # Enough of llama.cpp's grammars to say whether a text is accepted, and to make up texts that
  # are.

  # The sample of all characters for an excluding class.
  @sample ~c"aZ09 \t\"'\\`~-_#{}[]<>|&;$!?.,:#*()=+/@%é“’—ü漢" ++
            [0, 0x1B, 0xA0, 0x2028, 0xFEFF, 0x1F600]

  @doc "The rules of a grammar by their names; raises if it cannot be read or a rule is missing."
  def parse(grammar) do
    rules =
      for line <- String.split(grammar, "\n", trim: true), into: %{} do
        [_, name, rule] = Regex.run(~r/\A([a-zA-Z][a-zA-Z0-9-]*) ::= (.*)\z/s, line)
        {node, ""} = alternatives(rule)
        {name, node}
      end

    for {name, node} <- rules,
        ref <- refs(node),
        not is_map_key(rules, ref),
        do: raise("#{name}: no rule #{ref}")

    rules
  end

  def accepts?(rules, text) do
    text = text |> String.to_charlist() |> List.to_tuple()
    Process.put(__MODULE__, %{})
    tuple_size(text) in ends({:ref, "root"}, 0, text, rules)
  end

  @doc "A text that the rule derives, by the process's random numbers."
  def generate(rules, rule \\ "root"), do: IO.chardata_to_string(make({:ref, rule}, rules, 0))

  # Reading

  defp alternatives(text) do
    {first, rest} = sequence(text, [])

    case rest do
      "|" <> rest ->
        {next, rest} = alternatives(rest)
        {{:alt, [first, next]}, rest}

      rest ->
        {first, rest}
    end
  end

  defp sequence(text, done) do
    case String.trim_leading(text, " ") do
      "" -> {{:seq, Enum.reverse(done)}, ""}
      <<c, _::binary>> = rest when c in [?|, ?)] -> {{:seq, Enum.reverse(done)}, rest}
      rest -> with {node, rest} <- item(rest), do: sequence(rest, [node | done])
    end
  end

  defp item(text) do
    {node, rest} = atom(text)

    case rest do
      "*" <> rest ->
        {{:rep, node, 0, :infinity}, rest}

      "+" <> rest ->
        {{:rep, node, 1, :infinity}, rest}

      "?" <> rest ->
        {{:rep, node, 0, 1}, rest}

      "{" <> _ ->
        [all, min, comma, max] = Regex.run(~r/\A\{(\d+)(,?)(\d*)\}/, rest)
        max = if comma == "", do: min, else: max
        max = if max == "", do: :infinity, else: String.to_integer(max)

        {{:rep, node, String.to_integer(min), max},
         binary_part(rest, byte_size(all), byte_size(rest) - byte_size(all))}

      rest ->
        {node, rest}
    end
  end

  defp atom("(" <> rest) do
    {node, ")" <> rest} = alternatives(rest)
    {node, rest}
  end

  defp atom("\"" <> rest) do
    {chars, rest} = chars(rest, ?", [])
    {{:seq, Enum.map(chars, &{:class, false, [{&1, &1}]})}, rest}
  end

  defp atom("[^" <> rest), do: class(rest, true)
  defp atom("[" <> rest), do: class(rest, false)

  defp atom(rest) do
    [name] = Regex.run(~r/\A[a-zA-Z][a-zA-Z0-9-]*/, rest)
    {{:ref, name}, binary_part(rest, byte_size(name), byte_size(rest) - byte_size(name))}
  end

  defp class(rest, negated) do
    {chars, rest} = chars(rest, ?], [])
    {{:class, negated, ranges(chars)}, rest}
  end

  defp ranges([from, :dash, to | rest]), do: [{from, to} | ranges(rest)]
  defp ranges([:dash | rest]), do: [{?-, ?-} | ranges(rest)]
  defp ranges([char | rest]), do: [{char, char} | ranges(rest)]
  defp ranges([]), do: []

  defp chars(<<close::utf8, rest::binary>>, close, done), do: {Enum.reverse(done), rest}
  defp chars("\\n" <> rest, close, done), do: chars(rest, close, [?\n | done])
  defp chars("\\t" <> rest, close, done), do: chars(rest, close, [?\t | done])
  defp chars("\\r" <> rest, close, done), do: chars(rest, close, [?\r | done])

  defp chars(<<"\\", c::utf8, rest::binary>>, close, done) when c in [?\\, ?", ?]],
    do: chars(rest, close, [c | done])

  defp chars(<<"\\x", code::binary-size(2), rest::binary>>, close, done),
    do: chars(rest, close, [String.to_integer(code, 16) | done])

  defp chars(<<"\\u", code::binary-size(4), rest::binary>>, close, done),
    do: chars(rest, close, [String.to_integer(code, 16) | done])

  defp chars("-" <> rest, ?], done), do: chars(rest, ?], [:dash | done])

  defp chars(<<c::utf8, rest::binary>>, close, done) when c != ?\\,
    do: chars(rest, close, [c | done])

  defp refs({:ref, name}), do: [name]
  defp refs({kind, nodes}) when kind in [:alt, :seq], do: Enum.flat_map(nodes, &refs/1)
  defp refs({:rep, node, _, _}), do: refs(node)
  defp refs({:class, _, _}), do: []

  # Accepting: the places at which a node may end that begins at one.

  defp ends({:ref, name}, at, text, rules) do
    case Process.get(__MODULE__) do
      %{{^name, ^at} => known} ->
        known

      _ ->
        found = ends(rules[name], at, text, rules)
        Process.put(__MODULE__, Map.put(Process.get(__MODULE__), {name, at}, found))
        found
    end
  end

  defp ends({:alt, nodes}, at, text, rules),
    do: nodes |> Enum.flat_map(&ends(&1, at, text, rules)) |> Enum.uniq()

  defp ends({:seq, nodes}, at, text, rules),
    do: Enum.reduce(nodes, [at], fn node, places -> step(node, places, text, rules) end)

  defp ends({:rep, node, min, max}, at, text, rules) do
    first = Enum.reduce(1..min//1, [at], fn _, places -> step(node, places, text, rules) end)

    more(
      node,
      first,
      MapSet.new(first),
      if(max == :infinity, do: max, else: max - min),
      text,
      rules
    )
  end

  defp ends({:class, negated, ranges}, at, text, _rules) do
    if at < tuple_size(text) and within?(elem(text, at), ranges) != negated,
      do: [at + 1],
      else: []
  end

  defp more(_node, [], found, _left, _text, _rules), do: MapSet.to_list(found)
  defp more(_node, _places, found, 0, _text, _rules), do: MapSet.to_list(found)

  defp more(node, places, found, left, text, rules) do
    next = node |> step(places, text, rules) |> Enum.reject(&(&1 in found))
    left = if left == :infinity, do: left, else: left - 1
    more(node, next, MapSet.union(found, MapSet.new(next)), left, text, rules)
  end

  defp step(node, places, text, rules),
    do: places |> Enum.flat_map(&ends(node, &1, text, rules)) |> Enum.uniq()

  defp within?(char, ranges),
    do: Enum.any?(ranges, fn {from, to} -> char >= from and char <= to end)

  # Making up

  defp make({:ref, name}, rules, depth), do: make(rules[name], rules, depth + 1)
  defp make({:alt, nodes}, rules, depth), do: nodes |> Enum.random() |> make(rules, depth)
  defp make({:seq, nodes}, rules, depth), do: Enum.map(nodes, &make(&1, rules, depth))

  defp make({:rep, node, min, max}, rules, depth) do
    # Less and less, so that every text ends.
    most = if depth > 8, do: 0, else: 4
    extra = if max == :infinity, do: most, else: min(max - min, most)
    for _ <- 1..(min + :rand.uniform(extra + 1) - 1)//1, do: make(node, rules, depth)
  end

  defp make({:class, true, ranges}, _rules, _depth),
    do: Enum.random(Enum.reject(@sample, &within?(&1, ranges)))

  defp make({:class, false, ranges}, _rules, _depth) do
    {from, to} = Enum.random(ranges)
    Enum.random(from..to)
  end
end
