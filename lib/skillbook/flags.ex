defmodule Skillbook.Flags do
  @moduledoc """
  Checks and converts the flags of a command, for handlers.

  A handler whose page declares its flags gets them checked and converted already; see
  `cast_declared/3`. The other functions are for handlers that check flags themselves:

      iex> alias Skillbook.Flags
      iex> check = fn flags ->
      ...>   with {:ok, flags} <- Flags.known(flags, ~w(title priority due limit)),
      ...>        :ok <- Flags.require(flags, ["title"]),
      ...>        {:ok, flags} <- Flags.cast_text(flags, "title"),
      ...>        {:ok, flags} <- Flags.cast_keyword(flags, "priority"),
      ...>        :ok <- Flags.validate_enum(flags, "priority", ~w(high low)),
      ...>        {:ok, flags} <- Flags.cast_date(flags, "due"),
      ...>        {:ok, flags} <- Flags.cast_integer(flags, "limit", min: 1) do
      ...>     {:ok, Flags.apply_defaults(flags, %{"limit" => 20})}
      ...>   end
      ...> end
      iex> {:ok, flags} = check.(%{"title" => ["Review", "the", "PR"], "due" => "2026-03-01"})
      iex> flags
      %{"title" => "Review the PR", "due" => ~D[2026-03-01], "limit" => 20}
      iex> {:error, e} = check.(%{"priority" => "low"})
      iex> Exception.message(e)
      "--title is required and missing. Add it as: --title VALUE"

  ## Return values

  All functions take the flags first. Conversions (`known/2` and the `cast_…` functions) return
  `{:ok, flags}` with the converted value. Checks (`require/2`, `require_any/2`,
  `validate_enum/3`) return `:ok`. Both return `{:error, %Skillbook.FlagError{}}` for an invalid
  value. Absent flags pass all conversions and checks except `require/2` and `require_any/2`.

  ## Absent flags

  `nil` and `[]` count as absent. Only JSON objects can contain them: some models write all
  members of an object and use these values for the flags that they do not need. With a
  declaration that has the flag `--clear`, `[]` for one of its fields clears this field.

  ## Single values

  A list of one item counts as that item. Several words are accepted for text only: in
  `--title Review the PR` the missing quotes are obvious, but `--limit 5 10` is ambiguous. In a
  JSON object, `cast_declared/3` refuses a list of several items for one text too.
  """

  alias Skillbook.Flags.{Cast, Check}
  alias Skillbook.{Declaration, FlagError}

  @typedoc "Flags by name, as in `Skillbook.Handler`, with converted values."
  @type t :: %{optional(String.t()) => term()}

  @type cast :: {:ok, t()} | {:error, FlagError.t()}
  @type check :: :ok | {:error, FlagError.t()}

  # Which flags are given

  @doc """
  Rejects unknown flags, and renames the others to the names in `names`.

  Case, `_` and `-` are ignored: `--due_before` and `--dueBefore` become `--due-before`. The
  values of two spellings are joined like those of a repeated flag. Absent flags (`nil`, `[]`) are
  removed.

      iex> flags = %{"due_before" => "2026-03-01", "query" => nil}
      iex> Skillbook.Flags.known(flags, ["query", "due-before"])
      {:ok, %{"due-before" => "2026-03-01"}}

      iex> {:error, e} = Skillbook.Flags.known(%{"statsu" => "done"}, ["query", "status"])
      iex> Exception.message(e)
      "unknown flag --statsu; did you mean --status? Known flags: --query, --status"

  A known flag with one dash is rejected among the values of another:

      iex> flags = %{"query" => ["report", "-status", "done"]}
      iex> {:error, e} = Skillbook.Flags.known(flags, ["query", "status"])
      iex> {e.kind, e.flag, e.value}
      {:one_dash, "query", "-status"}
  """
  @spec known(t(), [String.t()]) :: cast()
  defdelegate known(flags, names), to: Check

  @doc """
  Assigns the words before the first flag to the flags in `names`, in order, and rejects further
  words.

  Flags that are given by name take no word. With an empty list every word is rejected.

      iex> Skillbook.Flags.cast_args(%{"status" => "done"}, ["T-12"], ["id"])
      {:ok, %{"id" => "T-12", "status" => "done"}}

      iex> {:error, e} = Skillbook.Flags.cast_args(%{}, ["weekly", "report"], [])
      iex> Exception.message(e)
      ~s("weekly report" has no flag. Put a flag in front: --FLAG "weekly report")
  """
  @spec cast_args(t(), [String.t()], [String.t()]) :: cast()
  defdelegate cast_args(flags, args, names), to: Check

  @doc """
  Checks that all of `names` are given. The error lists all missing flags.

      iex> Skillbook.Flags.require(%{"to" => "bob@example.com"}, ["to"])
      :ok

      iex> {:error, e} = Skillbook.Flags.require(%{"to" => "bob@example.com"}, ["to", "body"])
      iex> Exception.message(e)
      "--body is required and missing. Add it as: --body VALUE"
  """
  @spec require(t(), [String.t()]) :: check()
  defdelegate require(flags, names), to: Check

  @doc """
  Checks that at least one of `names` is given.

      iex> Skillbook.Flags.require_any(%{"body" => "Hi"}, ["subject", "body"])
      :ok

      iex> {:error, e} = Skillbook.Flags.require_any(%{}, ["subject", "body"])
      iex> Exception.message(e)
      "one of --subject or --body is required. Add for example: --subject VALUE"
  """
  @spec require_any(t(), [String.t()]) :: check()
  defdelegate require_any(flags, names), to: Check

  @doc """
  Sets absent flags to their default values.

      iex> defaults = %{"limit" => 20, "sort" => "name"}
      iex> Skillbook.Flags.apply_defaults(%{"limit" => "5", "sort" => nil}, defaults)
      %{"limit" => "5", "sort" => "name"}
  """
  @spec apply_defaults(t(), t()) :: t()
  defdelegate apply_defaults(flags, defaults), to: Check

  # Values

  @doc """
  Checks that a value, or each value of a list, is one of `allowed`.

  The comparison is exact. Use `cast_keyword/2` first to accept `In-Progress` as `in_progress`.

      iex> Skillbook.Flags.validate_enum(%{"sort" => "name"}, "sort", ["name", "date"])
      :ok

      iex> flags = %{"sort" => "size"}
      iex> {:error, e} = Skillbook.Flags.validate_enum(flags, "sort", ["name", "date"])
      iex> Exception.message(e)
      ~s(--sort must be one of name, date, got "size". Write for example: --sort name)
  """
  @spec validate_enum(t(), String.t(), [term()]) :: check()
  defdelegate validate_enum(flags, name, allowed), to: Cast

  @doc """
  Converts a keyword, or a list of keywords, to lower case with `_` for `-` and blanks.

      iex> Skillbook.Flags.cast_keyword(%{"status" => ["In Progress", "on-hold"]}, "status")
      {:ok, %{"status" => ["in_progress", "on_hold"]}}
  """
  @spec cast_keyword(t(), String.t()) :: {:ok, t()}
  defdelegate cast_keyword(flags, name), to: Cast, as: :keyword

  @doc """
  Reads one of the keywords in `allowed`. Case is ignored, and `-` and blanks are read as `_`.

      iex> flags = %{"status" => "In Progress"}
      iex> Skillbook.Flags.cast_one_of(flags, "status", ["todo", "in_progress"])
      {:ok, %{"status" => "in_progress"}}

      iex> flags = %{"sort" => ["name", "date"]}
      iex> {:error, e} = Skillbook.Flags.cast_one_of(flags, "sort", ["name", "date"])
      iex> Exception.message(e)
      ~s(--sort takes one value, got 2: "name", "date". Write for example: --sort name)
  """
  @spec cast_one_of(t(), String.t(), [String.t()]) :: cast()
  defdelegate cast_one_of(flags, name, allowed), to: Cast, as: :one_of

  @doc """
  Reads one value with a function of the handler.

  `cast` returns `{:ok, value}`; anything else is an error. `expected` completes "must be …" in
  the error, and `example` is a valid value as written in a command.

      iex> size = fn text -> with true <- text in ~w(S M L), do: {:ok, text} end
      iex> Skillbook.Flags.cast(%{"size" => "M"}, "size", "a size", "M", size)
      {:ok, %{"size" => "M"}}
      iex> {:error, e} = Skillbook.Flags.cast(%{"size" => "XXL"}, "size", "a size", "M", size)
      iex> Exception.message(e)
      ~s(--size must be a size, got "XXL". Write for example: --size M)
  """
  @spec cast(t(), String.t(), String.t(), String.t(), (term() -> {:ok, term()} | term())) ::
          cast()
  defdelegate cast(flags, name, expected, example, cast), to: Cast

  @doc """
  Reads an integer of 64 bits. A number without a fraction, such as `7.0`, is one.

  ## Options

    * `:min`, `:max` (integer) - the range

  ## Examples

      iex> Skillbook.Flags.cast_integer(%{"limit" => "20"}, "limit", min: 1)
      {:ok, %{"limit" => 20}}

      iex> {:error, e} = Skillbook.Flags.cast_integer(%{"limit" => "0"}, "limit", min: 1)
      iex> Exception.message(e)
      ~s(--limit must be a whole number from 1 on, got "0". Write for example: --limit 1)
  """
  @spec cast_integer(t(), String.t(), keyword()) :: cast()
  defdelegate cast_integer(flags, name, opts \\ []), to: Cast, as: :integer

  @doc """
  Reads a number, with or without a fraction, as a float.

  ## Options

    * `:min`, `:max` (number) - the range

  ## Examples

      iex> Skillbook.Flags.cast_number(%{"amount" => "12.50"}, "amount")
      {:ok, %{"amount" => 12.5}}

      iex> {:error, e} = Skillbook.Flags.cast_number(%{"amount" => "12,50"}, "amount")
      iex> Exception.message(e)
      ~s(--amount must be a number, got "12,50". Write for example: --amount 2.5)
  """
  @spec cast_number(t(), String.t(), keyword()) :: cast()
  defdelegate cast_number(flags, name, opts \\ []), to: Cast, as: :number

  @doc """
  Reads a switch: `true` without a value, or `true`, `yes`, `on`, `1` and their opposites.

      iex> Skillbook.Flags.cast_boolean(%{"overdue" => true, "unread" => "no"}, "unread")
      {:ok, %{"overdue" => true, "unread" => false}}

      iex> {:error, e} = Skillbook.Flags.cast_boolean(%{"overdue" => "report"}, "overdue")
      iex> {e.kind, e.value, e.expected}
      {:invalid, "report", "a switch, alone or with true or false"}
  """
  @spec cast_boolean(t(), String.t()) :: cast()
  defdelegate cast_boolean(flags, name), to: Cast, as: :boolean

  @doc """
  Reads a date as `YYYY-MM-DD`.

  ## Options

    * `:today` (`Date`) - also accept the words `yesterday`, `today` and `tomorrow`

  ## Examples

      iex> Skillbook.Flags.cast_date(%{"due" => "2026-02-28"}, "due")
      {:ok, %{"due" => ~D[2026-02-28]}}

      iex> Skillbook.Flags.cast_date(%{"due" => "Tomorrow"}, "due", today: ~D[2026-02-28])
      {:ok, %{"due" => ~D[2026-03-01]}}

      iex> {:error, e} = Skillbook.Flags.cast_date(%{"due" => "2026-02-30"}, "due")
      iex> Exception.message(e)
      ~s(--due must be a day as YYYY-MM-DD, got "2026-02-30". Write for example: --due 2026-03-01)
  """
  @spec cast_date(t(), String.t(), keyword()) :: cast()
  defdelegate cast_date(flags, name, opts \\ []), to: Cast, as: :date

  @doc """
  Reads a time in ISO 8601 with its offset from UTC, as a `DateTime` in UTC.

      iex> Skillbook.Flags.cast_datetime(%{"start" => "2026-03-01T10:00:00+02:00"}, "start")
      {:ok, %{"start" => ~U[2026-03-01 08:00:00Z]}}

      iex> {:error, e} = Skillbook.Flags.cast_datetime(%{"start" => "2026-03-01 10:00"}, "start")
      iex> {e.expected, e.example}
      {"a date, a time and an offset in ISO 8601", "2026-03-01T10:00:00+01:00"}
  """
  @spec cast_datetime(t(), String.t()) :: cast()
  defdelegate cast_datetime(flags, name), to: Cast, as: :datetime

  @doc """
  Reads text. Several words are joined with blanks; numbers become text.

  ## Options

    * `:max` (characters) - the maximum length
    * `:line` (boolean) - whether line breaks are rejected. Defaults to `false`
    * `:empty` (boolean) - whether empty and blank text is accepted. Defaults to `false`

  ## Examples

      iex> Skillbook.Flags.cast_text(%{"title" => ["Review", "the", "PR"]}, "title")
      {:ok, %{"title" => "Review the PR"}}

      iex> {:error, e} = Skillbook.Flags.cast_text(%{"title" => true}, "title")
      iex> Exception.message(e)
      ~s(--title needs a value and has none. Write for example: --title "some text")
  """
  @spec cast_text(t(), String.t(), keyword()) :: cast()
  defdelegate cast_text(flags, name, opts \\ []), to: Cast, as: :text

  @doc """
  Reads one or more values as a list of strings.

  Commas separate values too. Blanks around values, duplicates, and the brackets and quotes of
  `["Q1", "backend"]` are removed.

      iex> Skillbook.Flags.cast_list(%{"tags" => "Q1"}, "tags")
      {:ok, %{"tags" => ["Q1"]}}

      iex> Skillbook.Flags.cast_list(%{"tags" => ["Q1,", "backend", "Q1"]}, "tags")
      {:ok, %{"tags" => ["Q1", "backend"]}}

      iex> Skillbook.Flags.cast_list(%{"tags" => ~s(["Q1", "backend"])}, "tags")
      {:ok, %{"tags" => ["Q1", "backend"]}}

      iex> {:error, e} = Skillbook.Flags.cast_list(%{"tags" => ","}, "tags")
      iex> {e.expected, e.example}
      {"one or more values, each one line", "one two"}
  """
  @spec cast_list(t(), String.t()) :: cast()
  defdelegate cast_list(flags, name), to: Cast, as: :list

  @doc """
  Reads one e-mail address.

      iex> Skillbook.Flags.cast_email(%{"to" => "bob@example.com"}, "to")
      {:ok, %{"to" => "bob@example.com"}}

      iex> {:error, e} = Skillbook.Flags.cast_email(%{"to" => "bob"}, "to")
      iex> Exception.message(e)
      ~s(--to must be an e-mail address, got "bob". Write for example: --to bob@example.com)
  """
  @spec cast_email(t(), String.t()) :: cast()
  defdelegate cast_email(flags, name), to: Cast, as: :email

  @doc """
  Reads one address of the web, with `http` or `https`, of up to 2,048 bytes.

      iex> Skillbook.Flags.cast_url(%{"page" => "https://example.com/a?b=c"}, "page")
      {:ok, %{"page" => "https://example.com/a?b=c"}}

      iex> {:error, e} = Skillbook.Flags.cast_url(%{"page" => "example.com"}, "page")
      iex> Exception.message(e)
      ~s(--page must be an address of the web with http or https, got "example.com". ) <>
        "Write for example: --page https://example.com/page"
  """
  @spec cast_url(t(), String.t()) :: cast()
  defdelegate cast_url(flags, name), to: Cast, as: :url

  @doc """
  Reads one or more e-mail addresses as a list. Commas may separate them.

      iex> flags = %{"to" => ["bob@example.com,", "ann@example.com"]}
      iex> Skillbook.Flags.cast_emails(flags, "to")
      {:ok, %{"to" => ["bob@example.com", "ann@example.com"]}}

      iex> {:error, e} = Skillbook.Flags.cast_emails(%{"to" => ["bob@example.com", "Ann"]}, "to")
      iex> {e.value, e.expected}
      {"Ann", "one or more e-mail addresses"}
  """
  @spec cast_emails(t(), String.t()) :: cast()
  defdelegate cast_emails(flags, name), to: Cast, as: :emails

  # Declared flags

  @doc """
  Checks and converts flags by the declaration of the command's page.

  Handlers get their flags in this form. `Skillbook.View.flags/2` returns the declaration. Unknown
  flags are rejected and required flags must be given. Values are converted to the declared types,
  from text or from JSON: numbers, dates, booleans, keywords as the page spells them, and lists
  for flags with several values. Absent flags get the default of the page or are left out. Flags
  without a declared type keep their text or texts.

  ## Options

    * `:args` (list of texts) - the words before the first flag, which are assigned to flags as
      declared. If the command accepts other words, they are ignored. Defaults to `[]`
    * `:today` (`Date`) - the current day, for pages that allow the words `yesterday`, `today` and
      `tomorrow`
    * `:json` (boolean) - whether the flags come from a JSON object, where a list of several items
      is no text. In a line, several words without quotes are one. Defaults to `false`

  ## Examples

      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> {:ok, declaration} = Skillbook.View.flags(Skillbook.View.all(catalog), "tasks.search")
      iex> flags = %{"status" => "In Progress", "due_before" => "tomorrow", "overdue" => true}
      iex> {:ok, flags} = Skillbook.Flags.cast_declared(flags, declaration, today: ~D[2026-02-28])
      iex> {flags["status"], flags["due-before"], flags["overdue"], flags["limit"]}
      {["in_progress"], ~D[2026-03-01], true, 20}
      iex> {:error, e} = Skillbook.Flags.cast_declared(%{"limit" => "500"}, declaration)
      iex> Exception.message(e)
      ~s(--limit must be a whole number from 1 to 100, got "500". Write for example: --limit 1)
  """
  @spec cast_declared(t(), Declaration.t(), [
          {:args, [String.t()]} | {:json, boolean()} | {:today, Date.t()}
        ]) :: cast()
  defdelegate cast_declared(flags, declaration, opts \\ []), to: Check, as: :declared

  @doc """
  Checks flags like `cast_declared/3`, without converting them. `args` are the words before the
  first flag.

      iex> page = "## Flags\\n\\n--limit  Maximum number of hits, from 1 to 9\\n"
      iex> declaration = Skillbook.Declaration.read(page)
      iex> Skillbook.Flags.check(%{"limit" => "5"}, declaration)
      :ok
  """
  @spec check(t(), Declaration.t(), [String.t()]) :: check()
  defdelegate check(flags, declaration, args \\ []), to: Check
end
