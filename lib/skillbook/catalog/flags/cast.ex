defmodule Skillbook.Flags.Cast do
  @moduledoc false
  # Converts the value of one flag to a type: numbers, dates, texts, lists, e-mail addresses,
  # keywords. `Skillbook.Flags` documents these functions, under names with `cast_`.

  alias Skillbook.Support.{Closest, JSON, Number, UntilError}
  alias Skillbook.{Declaration, FlagError, Flags}

  # A longer text of digits is not a number that anyone meant, and parsing takes quadratic time.
  @max_integer_bytes 20
  @max_float_bytes 64
  @integers -0x8000000000000000..0x7FFFFFFFFFFFFFFF
  @exact 0x20000000000000

  @spec validate_enum(Flags.t(), String.t(), [term()]) :: Flags.check()
  def validate_enum(flags, name, allowed) do
    wrong = flags |> value(name) |> List.wrap() |> Enum.reject(&(&1 in allowed))

    case wrong do
      [] ->
        :ok

      [true | _] ->
        error(:no_value, name, true, example: example(hd(allowed)))

      wrong ->
        near = wrong |> Enum.filter(&is_binary/1) |> Enum.flat_map(&closest(&1, allowed, 0.9))
        expected = "one of #{Enum.join(allowed, ", ")}"
        invalid(name, one_or_all(wrong), expected, example(hd(near ++ allowed)))
    end
  end

  @spec keyword(Flags.t(), String.t()) :: {:ok, Flags.t()}
  def keyword(flags, name) do
    case flags do
      %{^name => values} when is_list(values) ->
        {:ok, %{flags | name => Enum.map(values, &normalize/1)}}

      %{^name => value} ->
        {:ok, %{flags | name => normalize(value)}}

      _ ->
        {:ok, flags}
    end
  end

  @spec one_of(Flags.t(), String.t(), [String.t()]) :: Flags.cast()
  def one_of(flags, name, allowed) do
    case value(flags, name) do
      nil ->
        {:ok, flags}

      values when is_list(values) ->
        error(:too_many, name, values,
          expected: "one of #{Enum.join(allowed, ", ")}",
          example: example(hd(allowed))
        )

      value ->
        word = find_allowed(value, allowed)

        with :ok <- validate_enum(%{name => word}, name, allowed),
             do: {:ok, Map.put(flags, name, word)}
    end
  end

  @spec cast(Flags.t(), String.t(), String.t(), String.t(), (term() -> {:ok, term()} | term())) ::
          Flags.cast()
  def cast(flags, name, expected, example, cast) do
    case value(flags, name) do
      nil ->
        {:ok, flags}

      true ->
        error(:no_value, name, true, expected: expected, example: example)

      values when is_list(values) ->
        error(:too_many, name, values, expected: expected, example: example)

      value ->
        put(flags, name, value, cast.(value), expected, example)
    end
  end

  @spec integer(Flags.t(), String.t(), keyword()) :: Flags.cast()
  def integer(flags, name, opts) do
    opts = Keyword.validate!(opts, [:min, :max])
    {min, max} = {opts[:min], opts[:max]}
    example = Integer.to_string(min || max || 10)

    cast(flags, name, "a whole number" <> range(min, max), example, fn value ->
      with {:ok, number} <- parse_integer(value),
           true <- within?(number, min, max),
           do: {:ok, number}
    end)
  end

  @spec number(Flags.t(), String.t(), keyword()) :: Flags.cast()
  def number(flags, name, opts) do
    opts = Keyword.validate!(opts, [:min, :max])
    {min, max} = {opts[:min], opts[:max]}
    example = to_string(min || max || 2.5)

    cast(flags, name, "a number" <> range(min, max), example, fn value ->
      with {:ok, number} <- parse_float(value),
           true <- within?(number, min, max),
           do: {:ok, number}
    end)
  end

  @spec boolean(Flags.t(), String.t()) :: Flags.cast()
  def boolean(flags, name) do
    case value(flags, name) do
      true -> {:ok, Map.put(flags, name, true)}
      _ -> cast(flags, name, "a switch, alone or with true or false", "", &parse_boolean/1)
    end
  end

  @spec date(Flags.t(), String.t(), keyword()) :: Flags.cast()
  def date(flags, name, opts) do
    opts = Keyword.validate!(opts, [:today])
    today = opts[:today]
    words = if today, do: ", yesterday, today or tomorrow", else: ""
    cast(flags, name, "a day as YYYY-MM-DD" <> words, "2026-03-01", &parse_date(&1, today))
  end

  @spec datetime(Flags.t(), String.t()) :: Flags.cast()
  def datetime(flags, name) do
    expected = "a date, a time and an offset in ISO 8601"
    cast(flags, name, expected, "2026-03-01T10:00:00+01:00", &parse_datetime/1)
  end

  @spec text(Flags.t(), String.t(), keyword()) :: Flags.cast()
  def text(flags, name, opts) do
    opts = Keyword.validate!(opts, [:max, line: false, empty: false])
    {max, line, empty} = {opts[:max], opts[:line], opts[:empty]}
    kind = if line, do: "one line of text", else: "text"
    kind = if max, do: "#{kind} of at most #{max} characters", else: kind
    expected = if empty, do: kind, else: "#{kind}, not empty"

    flags = Map.replace(flags, name, flags |> value(name) |> join_words())

    cast(flags, name, expected, ~s("some text"), fn value ->
      with {:ok, text} <- parse_text(value),
           true <- empty or String.trim(text) != "",
           true <- valid_text?(text, max, line),
           do: {:ok, text}
    end)
  end

  @doc "Checks that the whole of a text matches the pattern of a declaration."
  @spec pattern(Flags.t(), String.t(), String.t() | nil) :: Flags.cast()
  def pattern(flags, name, pattern)
      when is_nil(pattern) or not is_binary(:erlang.map_get(name, flags)),
      do: {:ok, flags}

  def pattern(flags, name, pattern) do
    case Declaration.check_pattern(pattern, flags[name]) do
      :ok ->
        {:ok, flags}

      {:error, found} ->
        expected = "text in which all of it matches #{pattern}"
        invalid(name, flags[name], expected, if(found != "", do: example(found)))
    end
  end

  @doc """
  Reads the values of a flag without a type: one text, or a list of several texts. Other values of
  a JSON object are written as in a line: numbers, booleans and objects as JSON.
  """
  @spec texts(Flags.t(), String.t()) :: {:ok, Flags.t()}
  def texts(flags, name) do
    case flags[name] do
      [value] -> {:ok, %{flags | name => any_text(value)}}
      values when is_list(values) -> {:ok, %{flags | name => Enum.map(values, &any_text/1)}}
      value -> {:ok, %{flags | name => any_text(value)}}
    end
  end

  defp any_text(value) do
    with :error <- parse_text(value),
         do: IO.iodata_to_binary(JSON.encode(value)),
         else: ({:ok, text} -> text)
  end

  @spec list(Flags.t(), String.t()) :: Flags.cast()
  def list(flags, name) do
    cast_all(flags, name, "one or more values, each one line", "one two", fn text ->
      if valid_text?(text, nil, true), do: {:ok, text}, else: :error
    end)
  end

  @spec email(Flags.t(), String.t()) :: Flags.cast()
  def email(flags, name) do
    cast(flags, name, "an e-mail address", "bob@example.com", fn value ->
      with {:ok, text} <- parse_text(value), do: parse_email(text)
    end)
  end

  @spec url(Flags.t(), String.t()) :: Flags.cast()
  def url(flags, name) do
    expected = "an address of the web with http or https"

    cast(flags, name, expected, "https://example.com/page", fn value ->
      with {:ok, text} <- parse_text(value), do: parse_url(text)
    end)
  end

  @spec emails(Flags.t(), String.t()) :: Flags.cast()
  def emails(flags, name) do
    cast_all(
      flags,
      name,
      "one or more e-mail addresses",
      "bob@example.com ann@example.com",
      &parse_email/1
    )
  end

  @doc "Returns the value of a flag; a list of one item is that item, and `[]` is `nil`."
  @spec value(Flags.t(), String.t()) :: term()
  def value(flags, name) do
    case flags do
      %{^name => []} -> nil
      %{^name => [single]} -> single
      %{^name => value} -> value
      _ -> nil
    end
  end

  defp cast_all(flags, name, expected, example, cast) do
    case value(flags, name) do
      nil ->
        {:ok, flags}

      true ->
        error(:no_value, name, true, expected: expected, example: example)

      value ->
        cast = fn text -> with :error <- cast.(text), do: {:error, text} end

        result =
          with {:ok, texts} <- value |> List.wrap() |> UntilError.map(&parse_text/1),
               # One part at a time: a list of 64,000 empty ones would stop the scheduler.
               parts =
                 for(
                   text <- unbracket(texts),
                   part <- String.splitter(text, ","),
                   part = String.trim(part),
                   part != "",
                   do: part
                 ),
               [_ | _] = parts <- Enum.uniq(parts) do
            UntilError.map(parts, cast)
          end

        put(flags, name, value, result, expected, example)
    end
  end

  # Removes the brackets of `[a, "b"]`. A bracket on one side only is part of its value.
  defp unbracket([first | _] = texts) do
    with "[" <> _ <- first, true <- texts |> List.last() |> String.ends_with?("]") do
      inner = texts |> Enum.join(",") |> String.slice(1..-2//1)

      for part <- String.splitter(inner, ","),
          part = String.trim(part),
          part != "",
          do: unquoted(part)
    else
      _ -> texts
    end
  end

  defp unbracket([]), do: []

  defp unquoted(<<quote, rest::binary>> = text) when quote in [?", ?'] and rest != "" do
    if :binary.last(rest) == quote, do: binary_part(rest, 0, byte_size(rest) - 1), else: text
  end

  defp unquoted(text), do: text

  defp put(flags, name, value, result, expected, example) do
    case result do
      {:ok, cast} -> {:ok, Map.put(flags, name, cast)}
      {:error, wrong} -> invalid(name, wrong, expected, example)
      _ -> invalid(name, value, expected, example)
    end
  end

  # Words become one text if all of them are text. `[true, "x"]` and objects are kept for the
  # error.
  defp join_words(values) when is_list(values) do
    case UntilError.map(values, &parse_text/1) do
      {:ok, texts} -> Enum.join(texts, " ")
      _ -> values
    end
  end

  defp join_words(value), do: value

  defp parse_text(value) when is_binary(value), do: {:ok, value}
  defp parse_text(value) when is_number(value), do: {:ok, to_string(value)}
  defp parse_text(%Date{} = day), do: {:ok, Date.to_iso8601(day)}
  defp parse_text(_), do: :error

  # Control characters would let a value redraw a terminal or end a line of YAML.
  defp valid_text?(text, max, line) do
    allowed? = if line, do: one_line?(text), else: printable?(text)
    allowed? and (max == nil or String.length(text) <= max)
  end

  defp one_line?(<<c::utf8, rest::binary>>)
       when c > 0x1F and c not in 0x7F..0x9F and c not in 0x2028..0x2029,
       do: one_line?(rest)

  defp one_line?(rest), do: rest == ""

  defp printable?(<<c::utf8, rest::binary>>)
       when (c > 0x1F and c != 0x7F) or c in [?\t, ?\n, ?\r],
       do: printable?(rest)

  defp printable?(rest), do: rest == ""

  # Integers have 64 bits, as in a declaration. Larger floats have lost digits.
  defp parse_integer(value) when is_integer(value) and value in @integers, do: {:ok, value}

  defp parse_integer(value)
       when is_float(value) and abs(value) <= @exact and trunc(value) == value,
       do: {:ok, trunc(value)}

  defp parse_integer(value) when is_binary(value) and byte_size(value) <= @max_integer_bytes do
    case value |> String.trim() |> Number.integer() do
      {number, ""} when number in @integers -> {:ok, number}
      {number, "." <> zeros} when abs(number) <= @exact -> if zeros?(zeros), do: {:ok, number}
      _ -> :error
    end
  end

  defp parse_integer(_), do: :error

  defp zeros?(text), do: text != "" and String.trim_leading(text, "0") == ""

  # `-0.0` is no other number than `0.0`.
  defp parse_float(value) when is_float(value), do: {:ok, value + 0.0}
  defp parse_float(value) when is_integer(value) and abs(value) < 1.0e300, do: {:ok, value * 1.0}

  defp parse_float(value) when is_binary(value) and byte_size(value) <= @max_float_bytes do
    case value |> String.trim() |> Number.float() do
      {number, ""} -> {:ok, number + 0.0}
      _ -> :error
    end
  end

  defp parse_float(_), do: :error

  defp parse_boolean(value) when is_boolean(value), do: {:ok, value}

  defp parse_boolean(value) do
    with {:ok, text} <- parse_text(value) do
      case text |> String.trim() |> String.downcase() do
        yes when yes in ~w(true yes on 1) -> {:ok, true}
        no when no in ~w(false no off 0) -> {:ok, false}
        _ -> :error
      end
    end
  end

  defp parse_date(%Date{} = date, _), do: {:ok, date}

  defp parse_date(value, today) do
    with {:ok, text} <- parse_text(value), do: day(text, today)
  end

  @doc """
  Reads a day: `YYYY-MM-DD`, and with the current day also yesterday, today or tomorrow.
  """
  @spec day(String.t(), Date.t() | nil) :: {:ok, Date.t()} | :error
  def day(text, today) do
    case {text |> String.trim() |> String.downcase(), today} do
      {"yesterday", %Date{}} -> {:ok, Date.add(today, -1)}
      {"today", %Date{}} -> {:ok, today}
      {"tomorrow", %Date{}} -> {:ok, Date.add(today, 1)}
      # `Date` also reads negative years; here the dash is a typing error.
      {"-" <> _, _} -> :error
      {text, _} -> Date.from_iso8601(text)
    end
    |> ok_or_error()
  end

  defp parse_datetime(%DateTime{} = datetime), do: DateTime.shift_zone(datetime, "Etc/UTC")

  defp parse_datetime(value) do
    with {:ok, text} <- parse_text(value),
         {:ok, datetime, _offset} <- text |> String.trim() |> DateTime.from_iso8601() do
      {:ok, datetime}
    end
    |> ok_or_error()
  end

  # RFC 5321 allows more forms, which people and models do not use.
  defp parse_email(text) do
    text = String.trim(text)

    if byte_size(text) <= 254 and
         Regex.match?(
           ~r/\A[^\s@<>()\[\],;:"\\]+@[^\s@<>()\[\],;:"\\.]+(\.[^\s@<>()\[\],;:"\\.]+)+\z/u,
           text
         ),
       do: {:ok, text},
       else: :error
  end

  @url ~r/\Ahttps?:\/\/
          (\[[0-9a-f:.]+\]|[a-z0-9._~%-]+) (:[0-9]{1,5})?
          ([\/?\#][!\#-;=?-\[\]_a-z~]*)?\z/ix

  # The same rule as for the defaults of pages, in the native library.
  defp parse_url(text) do
    text = String.trim(text)

    if byte_size(text) <= 2_048 and Regex.match?(@url, text), do: {:ok, text}, else: :error
  end

  defp ok_or_error({:ok, value}), do: {:ok, value}
  defp ok_or_error(_), do: :error

  defp normalize(value) when is_binary(value),
    do: value |> String.trim() |> String.downcase() |> String.replace(["-", " "], "_")

  defp normalize(value), do: value

  @doc "Returns the allowed word that a value spells, or the value."
  @spec find_allowed(term(), [String.t()]) :: term()
  def find_allowed(value, allowed) do
    spelled = value |> to_text() |> normalize()
    Enum.find(allowed, value, &(normalize(&1) == spelled))
  end

  @doc "Returns a list of at most one similar word."
  @spec closest(String.t(), [term()], float()) :: [String.t()]
  def closest(word, candidates, threshold) do
    word |> Closest.to(Enum.filter(candidates, &is_binary/1), threshold) |> List.wrap()
  end

  @doc "Writes a number as text, as in a line."
  @spec to_text(term()) :: term()
  def to_text(number) when is_number(number), do: to_string(number)
  def to_text(value), do: value

  defp within?(number, min, max),
    do: (min == nil or number >= min) and (max == nil or number <= max)

  defp range(nil, nil), do: ""
  defp range(min, nil), do: " from #{min} on"
  defp range(nil, max), do: " up to #{max}"
  defp range(min, max), do: " from #{min} to #{max}"

  defp one_or_all([single]), do: single
  defp one_or_all(values), do: values

  defp example(value) do
    text = to_string(value)
    if text =~ ~r/\s/, do: inspect(text), else: text
  end

  defp invalid(name, value, expected, example),
    do: error(:invalid, name, value, expected: expected, example: example)

  defp error(kind, name, value, fields),
    do: {:error, struct!(%FlagError{kind: kind, flag: name, value: value}, fields)}
end
