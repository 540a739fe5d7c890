defmodule Skillbook.SQL.Statements do
  @moduledoc false
  # Cuts a text of SQL into its statements and finds their placeholders, without understanding more of them than where
  # strings, quoted names and comments end. Connections need it whose driver takes one statement, or other placeholders.

  alias Skillbook.SQL.Error

  @type statement :: %{text: String.t(), placeholders: [pos_integer()], words: [String.t()], sets: boolean()}

  # What the beginning of a statement is, in small letters, says enough to know it by.
  @first_words 3

  @transaction ~w(begin start commit end rollback abort savepoint release)
  @attach ~w(attach detach vacuum)
  @session ~w(set reset discard listen unlisten prepare deallocate load)
  @asking_pragmas ~w(foreign_key_check foreign_key_list index_info index_list index_xinfo integrity_check quick_check
                     table_info table_list table_xinfo data_version)

  @doc "The one statement of a query, with as many placeholders as it gets parameters."
  @spec one(String.t(), Skillbook.SQL.dialect(), non_neg_integer()) ::
          {:ok, statement()} | {:error, Error.t()}
  def one(text, dialect, params) do
    case split(text, dialect) do
      {:ok, [statement]} ->
        with :ok <- allowed(statement, text), :ok <- placed(statement, params, text), do: {:ok, statement}

      {:ok, []} ->
        error(:syntax, "expected a statement, got only blanks or comments", text)

      {:ok, _several} ->
        error(:syntax, "expected one statement, got several; send them one by one", text)

      {:error, error} ->
        {:error, error}
    end
  end

  @doc "The statements of a batch, each with `refused`: why it may not be run, or nil."
  @spec all(String.t(), Skillbook.SQL.dialect()) ::
          {:ok, [{statement(), Error.t() | nil}]} | {:error, Error.t()}
  def all(text, dialect) do
    with {:ok, statements} <- split(text, dialect) do
      {:ok, for(statement <- statements, do: {statement, reason(allowed(statement, statement.text))})}
    end
  end

  @doc "Whether it changes something, as far as its first word tells."
  @spec writes?(statement()) :: boolean()
  def writes?(%{words: [first | _]}), do: first not in ~w(select with values table show explain pragma)
  def writes?(_statement), do: true

  defp reason(:ok), do: nil
  defp reason({:error, error}), do: error

  defp allowed(%{words: [word | _]}, text) when word in @transaction,
    do: refused("a transaction is begun and ended by the transaction function, not by a statement", text)

  defp allowed(%{words: [word | _]}, text) when word in @attach,
    do: refused("`attach`, `detach` and `vacuum` would change one connection of several", text)

  defp allowed(%{words: [word | _]}, text) when word in @session,
    do: refused("`#{word}` would change one connection of several", text)

  defp allowed(%{words: ["create", word | _]}, text) when word in ["temp", "temporary"],
    do: refused("temporary tables, views and triggers would exist in one connection of several", text)

  defp allowed(%{words: ["pragma", name | _] = words, sets: true}, text) do
    if Enum.any?(words, &(&1 in @asking_pragmas)),
      do: :ok,
      else: refused("`pragma #{name}` with a value would change one connection of several", text)
  end

  defp allowed(_statement, _text), do: :ok

  defp refused(message, text), do: error(:refused, message, text)

  defp placed(%{placeholders: placeholders}, given, text) do
    highest = Enum.max(placeholders, fn -> 0 end)
    missing = highest == given && Enum.find(1..given//1, &(&1 not in placeholders))

    cond do
      missing ->
        error(
          :params,
          "expected every placeholder up to the highest in the statement, $#{missing} is not there",
          text
        )

      highest == given ->
        :ok

      true ->
        error(:params, "expected #{expected(highest)}, got #{given}", text)
    end
  end

  defp expected(0), do: "no parameters, because the statement has no placeholder"
  defp expected(1), do: "1 parameter, for $1"
  defp expected(highest), do: "#{highest} parameters, for $1 to $#{highest}"

  defp error(kind, message, text),
    do: {:error, Error.in_statement(%Error{kind: kind, message: message}, text)}

  # Splitting. What is read of a statement so far: its text, the last two tokens (a word, `;` or other), and what a
  # statement keeps.

  @spec split(String.t(), Skillbook.SQL.dialect()) :: {:ok, [statement()]} | {:error, Error.t()}
  defp split(text, dialect) do
    if String.contains?(text, "\0") do
      error(:syntax, "expected a statement as text, got one with a NUL character in it", text)
    else
      {:ok, text |> scan(fresh(), dialect, []) |> Enum.reverse()}
    end
  end

  defp fresh, do: %{text: [], last: nil, before: nil, words: [], placeholders: [], sets: false}

  defp scan("", state, _dialect, done), do: finish(state, done)

  defp scan(";" <> rest, state, dialect, done) do
    # The body of a trigger has statements of its own, and ends with `; end`.
    if trigger?(state.words) and not (state.last == "end" and state.before == ";"),
      do: scan(rest, token(state, ";", ";"), dialect, done),
      else: scan(rest, fresh(), dialect, finish(state, done))
  end

  defp scan(<<blank, _::binary>> = text, state, dialect, done) when blank in ' \t\r\n\f' do
    [blanks] = Regex.run(~r/\A[ \t\r\n\f]+/, text)
    copy(text, byte_size(blanks), state, dialect, done)
  end

  defp scan("--" <> _ = text, state, dialect, done) do
    [comment] = Regex.run(~r/\A[^\n]*/, text)
    copy(text, byte_size(comment), state, dialect, done)
  end

  defp scan("/*" <> rest = text, state, dialect, done),
    do: copy(text, 2 + comment(rest, dialect, 1, 0), state, dialect, done)

  defp scan("'" <> rest = text, %{last: word} = state, :postgres, done) when word == "e",
    do: quoted(text, 1 + escaped(rest, 0), state, :postgres, done)

  defp scan(<<quote, rest::binary>> = text, state, dialect, done) when quote in [?', ?"],
    do: quoted(text, 1 + until(rest, quote, 0), state, dialect, done)

  defp scan("`" <> rest = text, state, :sqlite, done),
    do: quoted(text, 1 + until(rest, ?`, 0), state, :sqlite, done)

  defp scan("[" <> rest = text, state, :sqlite, done) do
    size =
      case :binary.match(rest, "]") do
        {at, 1} -> at + 2
        :nomatch -> byte_size(text)
      end

    quoted(text, size, state, :sqlite, done)
  end

  defp scan("$" <> rest = text, state, dialect, done) do
    case {Regex.run(~r/\A[1-9][0-9]*(?![A-Za-z0-9_])/, rest), dialect} do
      {[digits], _} ->
        state = %{state | placeholders: [String.to_integer(digits) | state.placeholders]}
        written = if dialect == :sqlite, do: ["?", digits], else: ["$", digits]
        scan(drop(rest, byte_size(digits)), token(state, written, :other), dialect, done)

      {nil, :postgres} ->
        quoted(text, dollar(text), state, dialect, done)

      {nil, :sqlite} ->
        quoted(text, 1, state, dialect, done)
    end
  end

  defp scan(<<first, _::binary>> = text, state, dialect, done)
       when first in ?a..?z or first in ?A..?Z or first == ?_ or first >= 128 do
    [word] = Regex.run(~r/\A[A-Za-z_\x80-\xff][A-Za-z0-9_$\x80-\xff]*/, text)
    small = String.downcase(word, :ascii)
    words = if length(state.words) < @first_words, do: state.words ++ [small], else: state.words
    scan(drop(text, byte_size(word)), token(%{state | words: words}, word, small), dialect, done)
  end

  defp scan(<<digit, _::binary>> = text, state, dialect, done) when digit in ?0..?9 do
    [number] = Regex.run(~r/\A[0-9][A-Za-z0-9_.]*/, text)
    quoted(text, byte_size(number), state, dialect, done)
  end

  defp scan(<<character, rest::binary>>, state, dialect, done) do
    state = %{state | sets: state.sets or character in '=('}
    scan(rest, token(state, <<character>>, :other), dialect, done)
  end

  # Blanks and comments are no tokens.
  defp copy(text, size, state, dialect, done) do
    state = %{state | text: [state.text | binary_part(text, 0, size)], last: apart(state.last)}
    scan(drop(text, size), state, dialect, done)
  end

  # `e` begins a string with escapes only right before the quote.
  defp apart("e"), do: :other
  defp apart(last), do: last

  defp quoted(text, size, state, dialect, done),
    do: scan(drop(text, size), token(state, binary_part(text, 0, size), :other), dialect, done)

  defp token(state, written, token),
    do: %{state | text: [state.text | written], before: state.last, last: token}

  defp finish(%{last: nil}, done), do: done

  defp finish(state, done) do
    text = state.text |> IO.iodata_to_binary() |> String.trim()
    [%{text: text, placeholders: state.placeholders, words: state.words, sets: state.sets} | done]
  end

  defp trigger?(["create", "trigger" | _]), do: true
  defp trigger?(["create", temporary, "trigger"]) when temporary in ["temp", "temporary"], do: true
  defp trigger?(_words), do: false

  # PostgreSQL's comments nest; an open one goes on to the end.
  defp comment("", _dialect, _depth, size), do: size
  defp comment("*/" <> _, _dialect, 1, size), do: size + 2
  defp comment("*/" <> rest, dialect, depth, size), do: comment(rest, dialect, depth - 1, size + 2)
  defp comment("/*" <> rest, :postgres, depth, size), do: comment(rest, :postgres, depth + 1, size + 2)
  defp comment(<<_, rest::binary>>, dialect, depth, size), do: comment(rest, dialect, depth, size + 1)

  # A doubled quote ends one part and begins the next at once, which comes to the same.
  defp until(text, quote, size) do
    case :binary.match(text, <<quote>>) do
      {at, 1} -> size + at + 1
      :nomatch -> size + byte_size(text)
    end
  end

  defp escaped("", size), do: size
  defp escaped(<<?\\, _, rest::binary>>, size), do: escaped(rest, size + 2)
  defp escaped("''" <> rest, size), do: escaped(rest, size + 2)
  defp escaped("'" <> _, size), do: size + 1
  defp escaped(<<_, rest::binary>>, size), do: escaped(rest, size + 1)

  defp dollar(text) do
    case Regex.run(~r/\A\$(?:[A-Za-z_\x80-\xff][A-Za-z0-9_\x80-\xff]*)?\$/, text) do
      [tag] ->
        case :binary.match(drop(text, byte_size(tag)), tag) do
          {at, size} -> byte_size(tag) + at + size
          :nomatch -> byte_size(text)
        end

      nil ->
        1
    end
  end

  defp drop(text, size), do: binary_part(text, size, byte_size(text) - size)
end
