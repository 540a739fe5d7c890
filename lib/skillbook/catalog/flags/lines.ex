defmodule Skillbook.Flags.Lines do
  @moduledoc false
  # The flags in the frontmatter of a page as fields of a form, and the page with changed ones.
  # A changed flag gets the line that `Skillbook.Support.Scaffold` writes for a new page; every
  # other byte stays. It is no writer of YAML: the flags are split by their indentation, and a
  # page is returned only if parsing it gives the changed flags and everything else as before.
  #
  # A flag is a form only if its line can be written again without a loss. Others, with a comment,
  # an anchor or a key that the form lacks, stay as they are.

  alias Skillbook.{Declaration, Frontmatter}
  alias Skillbook.Support.Scaffold

  @keys ~w(type values min max required repeatable default description)
  # Flags of a form, of 100 that a page may have, and characters of a field.
  @max_flags 50
  @max_text 1_000

  @first ~r/\Aflags[ \t]*:\s/
  @block ~r/\A(flags[ \t]*:)([ \t]*(?:[ \t]#.*)?\r?\n)\z/
  @empty ~r/\A(flags[ \t]*:)[ \t]*\{[ \t]*\}([ \t]*(?:[ \t]#.*)?\r?\n)\z/
  @key ~r/\A *(["']?)([\p{L}\p{N}_][\p{L}\p{N}_-]*)\1[ \t]*:(?=\s)/u

  @other "its flags are written in another form of YAML than one below the other"
  @elsewhere "its flags are declared elsewhere in the page, not in the field `flags`"
  @lost "it is written in a form that a new line would lose"
  @many "it has more than #{@max_flags} flags"
  @no_field "for which the form has no field"

  @typedoc "A flag as a form and as the line that stands for it, or why it is none."
  @type item :: {:flag, Scaffold.flag(), String.t()} | {:text, String.t(), String.t()}

  @typedoc "The line of `t:item/0` that is replaced, or nil for a new flag; nil removes the line."
  @type change :: {String.t() | nil, Scaffold.flag() | nil}

  @doc "The most flags of a form, and the most characters of a field."
  @spec limits() :: {pos_integer(), pos_integer()}
  def limits, do: {@max_flags, @max_text}

  @doc ~S"""
  Returns the flags of a page in their order, or why none of them can be changed by a form.

      iex> page = "---\nflags:\n  to: email\n  id: {pattern: 'A-\\d+'}\n---\n"
      iex> {:ok, [to, id]} = Skillbook.Flags.Lines.read(page)
      iex> {:flag, %{name: "to", type: "email"}, "to: {type: email}"} = to
      iex> id
      {:text, "id", "it has `pattern`, for which the form has no field"}
  """
  @spec read(String.t()) :: {:ok, [item()]} | {:error, String.t()}
  def read(text) do
    with {:ok, block} <- split(text),
         do: {:ok, for({:flag, _, _} = piece <- block.pieces, do: item(block, piece))}
  end

  @doc """
  Changes flags of a page. An error has the position of the change and its field, or nil.

  A flag that is the same as its line is left alone. For others, the line must be the one that
  `read/1` gives for this page, so that no other change of the flag is overwritten.
  """
  @spec put(String.t(), [change()]) ::
          {:ok, String.t()}
          | {:error, {{non_neg_integer(), atom()} | nil, String.t()}}
  def put(text, changes) do
    changes =
      changes
      |> Enum.with_index()
      |> Enum.reject(fn {{was, flag}, _at} -> was == (flag && Scaffold.flag_line(flag)) end)

    with [_ | _] <- changes,
         {:ok, block} <- split(text),
         {:ok, pieces} <- change(block, changes),
         {:ok, text} <- proven(block, pieces) do
      {:ok, text}
    else
      [] -> {:ok, text}
      {:error, {_place, _text} = error} -> {:error, error}
      {:error, reason} -> {:error, {nil, "expected flags that a form can change, but #{reason}"}}
    end
  end

  # Splitting

  defp split(text) do
    with true <- String.valid?(text),
         {:ok, %{present: true} = document} <- Frontmatter.parse(text),
         {:ends, true} <- {:ends, line_ends?(text)} do
      head = binary_part(text, 0, byte_size(text) - byte_size(document.body))
      flags = document.data["flags"] || %{}
      block = %{document: document, flags: flags, pieces: [], indent: "  "}

      case ~r/[^\n]*\n|[^\n]+\z/
           |> Regex.scan(head)
           |> List.flatten()
           |> Enum.split_while(&(not (&1 =~ @first))) do
        {_lines, []} when is_map_key(document.data, "flags") -> {:error, @other}
        {lines, []} -> without_flags(block, lines, text)
        {before, lines} -> with_flags(Map.put(block, :before, before), lines)
      end
    else
      {:ends, false} -> {:error, "its lines do not all end alike"}
      _broken -> {:error, "its frontmatter cannot be read"}
    end
  end

  # A form sends one kind of line ends.
  defp line_ends?(text) do
    rest = String.replace(text, "\r\n", "")
    not String.contains?(rest, if(rest == text, do: "\r", else: ["\r", "\n"]))
  end

  # Flags that are declared elsewhere would not count any more beside the field.
  defp without_flags(block, lines, text) do
    {before, behind} = Enum.split(lines, -1)
    first = "flags: {}" <> line_end(hd(lines))

    if Declaration.read(text),
      do: {:error, @elsewhere},
      else: {:ok, Map.merge(block, %{before: before, first: first, behind: behind})}
  end

  defp with_flags(block, [first | lines]) do
    {inside, behind} = Enum.split_while(lines, &(&1 =~ ~r/\A([ \t#]|\r?\n)/))
    indent = inside |> Enum.find("  ", &(not (blank?(&1) or comment?(&1)))) |> depth()

    with flags when is_map(flags) <- block.flags,
         false <- Enum.any?(behind, &(&1 =~ @first)),
         {:ok, pieces} <- pieces(inside, indent, [], []),
         names = for({:flag, name, _lines} <- pieces, do: name),
         true <- Enum.sort(names) == Enum.sort(Map.keys(flags)),
         true <- first =~ @block or (names == [] and first =~ @empty) do
      indent = String.duplicate(" ", indent)
      block = Map.merge(block, %{first: first, pieces: pieces, behind: behind, indent: indent})
      if length(names) > @max_flags, do: {:error, @many}, else: {:ok, block}
    else
      _other -> {:error, @other}
    end
  end

  # Lines, the last one first. Those that wait belong to a flag if a deeper line follows.
  defp pieces([], _indent, waiting, pieces), do: {:ok, Enum.reverse(kept(waiting, pieces))}

  defp pieces([line | lines], indent, waiting, pieces) do
    cond do
      blank?(line) or (comment?(line) and depth(line) <= indent) ->
        pieces(lines, indent, [line | waiting], pieces)

      depth(line) > indent and match?([{:flag, _name, _own} | _], pieces) ->
        [{:flag, name, own} | pieces] = pieces
        pieces(lines, indent, [], [{:flag, name, [line | waiting] ++ own} | pieces])

      depth(line) == indent and line =~ @key ->
        [_all, _quote, name] = Regex.run(@key, line)
        pieces(lines, indent, [], [{:flag, name, [line]} | kept(waiting, pieces)])

      comment?(line) ->
        pieces(lines, indent, [line | waiting], pieces)

      true ->
        :error
    end
  end

  defp kept([], pieces), do: pieces
  defp kept(waiting, pieces), do: [{:kept, waiting} | pieces]

  defp blank?(line), do: String.trim(line) == ""
  defp comment?(line), do: line =~ ~r/\A[ \t]*#/
  defp depth(line), do: byte_size(line) - byte_size(String.trim_leading(line, " "))
  defp line_end(line), do: if(String.ends_with?(line, "\r\n"), do: "\r\n", else: "\n")

  defp text({:kept, lines}), do: lines |> Enum.reverse() |> IO.iodata_to_binary()
  defp text({:flag, _name, [_ | _] = lines}), do: text({:kept, lines})
  defp text({:flag, _name, line}), do: line

  # The form of a flag

  defp item(%{flags: flags}, {:flag, name, _lines} = piece) do
    spec = flags[name]
    lines = text(piece)

    with :ok <- shown(lines, [name, spec]),
         true <- alone(lines) === %{name => spec},
         {:ok, flag} <- flag(name, spec),
         line = Scaffold.flag_line(flag),
         %{^name => again} <- alone("  #{line}\n"),
         {:ok, ^flag} <- flag(name, again) do
      {:flag, flag, line}
    else
      {:error, reason} -> {:text, name, reason}
      _lost -> {:text, name, @lost}
    end
  end

  defp alone(lines) do
    case Frontmatter.parse("---\nflags:\n#{lines}---\n") do
      {:ok, %{data: %{"flags" => flags}, diagnostics: []}} -> flags
      _other -> nil
    end
  end

  # Whether all characters are those of the values or hold these together. Others are those of
  # comments, anchors and tags, and of texts on several lines.
  defp shown(lines, values) do
    {lines, values} = {marks(lines), values |> texts() |> marks()}
    more = lines -- values

    cond do
      lines == values -> :ok
      ?# in more -> {:error, "it has a comment"}
      Enum.any?(more, &(&1 in [?&, ?*, ?!])) -> {:error, "it has an anchor, an alias or a tag"}
      true -> {:error, @lost}
    end
  end

  defp marks(text) do
    text
    |> String.replace(~r/[\s{}\[\],:"'\\-]/u, "")
    |> String.to_charlist()
    |> Enum.sort()
  end

  defp texts(nil), do: "null"
  defp texts(list) when is_list(list), do: Enum.map_join(list, &texts/1)
  defp texts(%{} = map), do: Enum.map_join(map, fn {key, value} -> key <> texts(value) end)
  defp texts(value), do: to_string(value)

  defp flag(name, type) when is_binary(type), do: flag(name, %{"type" => type})

  defp flag(name, %{} = spec) do
    type = spec["type"] || if(spec["values"], do: "one_of", else: "text")

    [min, max, default, description] =
      for key <- ~w(min max default description), do: field(spec[key])

    more = Map.keys(spec) -- @keys

    flag = %{
      name: name,
      type: type,
      values: values(spec["values"]),
      min: min,
      max: max,
      required: spec["required"] || false,
      repeatable: spec["repeatable"] || false,
      default: default,
      description: description
    }

    cond do
      more != [] -> {:error, "it has #{keys(more)}, " <> @no_field}
      type not in Scaffold.types() -> {:error, "it has a type that the form lacks"}
      :error in Map.values(flag) -> {:error, @lost}
      not is_boolean(flag.required) or not is_boolean(flag.repeatable) -> {:error, @lost}
      true -> {:ok, flag}
    end
  end

  defp flag(_name, _other), do: {:error, @lost}

  defp keys(keys), do: keys |> Enum.take(5) |> Enum.map_join(", ", &"`#{&1}`")

  # A text that a field gives back.
  defp field(nil), do: ""

  defp field(text) when is_binary(text) do
    if text != "" and text == String.trim(text) and not (text =~ ~r/\p{Cc}/u) and
         String.length(text) <= @max_text,
       do: text,
       else: :error
  end

  defp field(value) when is_number(value) or is_boolean(value), do: to_string(value)
  defp field(_other), do: :error

  defp values(nil), do: ""

  defp values(list) when is_list(list) do
    fields = Enum.map(list, &field/1)

    if Enum.any?(fields, &(&1 in ["", :error] or String.contains?(&1, ","))),
      do: :error,
      else: field(Enum.join(fields, ", "))
  end

  defp values(_other), do: :error

  # Changing

  defp change(block, changes) do
    changed =
      Enum.reduce_while(changes, {:ok, block.pieces}, fn {change, at}, {:ok, pieces} ->
        case change(block, pieces, change) do
          {:ok, pieces} -> {:cont, {:ok, pieces}}
          {:error, {field, text}} -> {:halt, {:error, {{at, field}, text}}}
        end
      end)

    with {:ok, pieces} <- changed, do: once(pieces, changes)
  end

  defp change(block, pieces, {nil, flag}) do
    with :ok <- Scaffold.check_flag(flag) do
      line = {:flag, flag.name, block.indent <> Scaffold.flag_line(flag) <> line_end(block.first)}
      last = pieces |> Enum.reverse() |> Enum.find_index(&(elem(&1, 0) == :flag))
      {:ok, List.insert_at(pieces, if(last, do: -1 - last, else: 0), line)}
    end
  end

  defp change(block, pieces, {was, flag}) do
    [name | _] = String.split(was, ":", parts: 2)
    at = Enum.find_index(pieces, &match?({:flag, ^name, [_ | _]}, &1))

    with {:flag, _name, [last | _]} = piece <- at && Enum.at(pieces, at),
         {:flag, _flag, ^was} <- item(block, piece) do
      cond do
        flag == nil ->
          {:ok, List.delete_at(pieces, at)}

        (checked = Scaffold.check_flag(flag, name)) != :ok ->
          checked

        true ->
          line = block.indent <> Scaffold.flag_line(flag) <> line_end(last)
          {:ok, List.replace_at(pieces, at, {:flag, flag.name, line})}
      end
    else
      _changed ->
        {:error, {:name, "expected --#{name} to be in the text as it was, got another text"}}
    end
  end

  defp once(pieces, changes) do
    names = for {:flag, name, _lines} <- pieces, do: name

    twice =
      Enum.find(Enum.reverse(changes), fn {{_was, flag}, _at} ->
        flag != nil and Enum.count(names, &(&1 == flag.name)) > 1
      end)

    case twice do
      nil when length(names) > @max_flags ->
        {:error, {nil, "expected at most #{@max_flags} flags, got #{length(names)}"}}

      nil ->
        {:ok, pieces}

      {{_was, flag}, at} ->
        {:error, {{at, :name}, "expected another name, got --#{flag.name} again"}}
    end
  end

  defp rebuilt(block, pieces) do
    first =
      if List.keymember?(pieces, :flag, 0),
        do: Regex.replace(@empty, block.first, "\\1\\2"),
        else: Regex.replace(@block, block.first, "\\1 {}\\2")

    lines = [block.before, first, Enum.map(pieces, &text/1), block.behind, block.document.body]
    IO.iodata_to_binary(lines)
  end

  # Parsing gives the changed flags, and everything else as before.
  defp proven(%{document: document} = block, pieces) do
    text = rebuilt(block, pieces)

    flags =
      for {:flag, name, lines} <- pieces, into: %{} do
        {name, if(is_list(lines), do: block.flags[name], else: alone(lines)[name])}
      end

    data = Map.put(document.data, "flags", flags)

    case Frontmatter.parse(text) do
      {:ok, parsed} when parsed.data === data and parsed.body === document.body -> {:ok, text}
      _other -> {:error, "the change would reach other fields"}
    end
  end
end
