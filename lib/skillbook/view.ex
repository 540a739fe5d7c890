defmodule Skillbook.View do
  @moduledoc """
  Reads the entries of a catalog as one profile may see them.

  All reading goes through a view. Hidden entries behave as if they did not exist: in results,
  errors, suggestions, counts, listings and diagnostics. A view keeps its generation of the
  catalog, also after a reload.

  ## Examples

      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> {:ok, view} = Skillbook.View.new(catalog, id: "a", skills: ["tasks.get", "memory.*"])
      iex> Enum.map(Skillbook.View.entries(view), & &1.name)
      ["memory.save", "memory.search", "tasks.get"]
      iex> Enum.map(Skillbook.View.domains(view), & &1.name)
      ["memory", "tasks"]

  ## Fields

    * `:ref` - the reference to the view in the native library
    * `:book` - the name of the book, or `nil`
    * `:profile` - the `Skillbook.Profile`
    * `:generation` - a number for the content that the profile sees. It differs between two views
      of a profile if and only if an entry or a domain has changed for it, so it says nothing
      about hidden entries. It does not count changes; `Skillbook.Catalog.generation/1` does
    * `:functions` - the functions of `Skillbook.Skill.new/1` among its handlers. Private
  """

  alias Skillbook.Support.{Arguments, Closest, Options}

  alias Skillbook.{
    Book,
    Catalog,
    Declaration,
    Diagnostic,
    Domain,
    Entry,
    Native,
    OptionError,
    Part,
    Profile,
    SQL,
    UnknownSkillError
  }

  @type t :: %__MODULE__{
          ref: reference(),
          book: atom() | nil,
          profile: Profile.t(),
          generation: pos_integer(),
          functions: %{optional(String.t()) => function()}
        }

  @enforce_keys [:ref, :profile, :generation]
  defstruct [:ref, :book, :profile, :generation, functions: %{}]

  @doc """
  Returns a view of the current generation of a catalog.

  The profile is a `Skillbook.Profile` or its options. In a book with a large store, the entries
  of its tenant may have to be fetched from the database, whose `Skillbook.SQL.Error` is returned.

      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> {:error, error} = Skillbook.View.new(catalog, id: "guest", skills: ["tasks.[a"])
      iex> error.option
      :skills
  """
  @spec new(Catalog.t(), Profile.t() | Skillbook.options()) ::
          {:ok, t()} | {:error, OptionError.t() | SQL.Error.t()}
  def new(%Catalog{} = catalog, profile) do
    with {:ok, profile} <- Profile.new(profile), do: of_catalog(catalog, profile)
  end

  def new(catalog, _profile),
    do: Arguments.check!("Skillbook.View.new/2", catalog: {:catalog, catalog})

  defp of_catalog(catalog, profile) do
    {ids, globs} = {Profile.ids(profile), Profile.globs(profile)}
    %{tenant: tenant, grants: grants, services: services} = profile

    case Native.view_new(catalog.ref, ids, tenant, grants, globs, services) do
      {:ok, view, generation} ->
        view = %__MODULE__{ref: view, profile: profile, generation: generation}
        {:ok, %{view | functions: catalog.functions}}

      {:error, {:bad_glob, glob, reason}} ->
        problem = {:invalid, "globs (#{reason})", glob}
        {:error, %OptionError{subject: "a profile", option: :skills, problem: problem}}

      # Again if they go at this moment, which happens at most every few minutes.
      :away ->
        with :ok <- Catalog.fetch(catalog, tenant), do: of_catalog(catalog, profile)
    end
  end

  @doc "Like `new/2`, but raises the error."
  @spec new!(Catalog.t(), Profile.t() | Skillbook.options()) :: t()
  def new!(catalog, profile) do
    case new(catalog, profile) do
      {:ok, view} -> view
      {:error, error} -> raise error
    end
  end

  @doc """
  Returns the unrestricted view of a catalog or of a running book, for trusted code.

      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> Skillbook.View.count(Skillbook.View.all(catalog)) == Skillbook.Catalog.count(catalog)
      true
  """
  @spec all(Catalog.t() | atom()) :: t()
  def all(book) when is_atom(book), do: %{all(Book.fetch!(book).catalog) | book: book}

  def all(%Catalog{} = catalog), do: new!(catalog, Profile.unrestricted())

  def all(other) do
    Arguments.check!("Skillbook.View.all/1", book_or_catalog: {:catalog, other})
  end

  @doc false
  # Everything that a profile of this tenant could see, whatever its grants and skills are.
  @spec all_of(Catalog.t() | atom(), Profile.tenant()) :: t()
  def all_of(book, tenant) when is_atom(book),
    do: %{all_of(Book.fetch!(book).catalog, tenant) | book: book}

  def all_of(%Catalog{} = catalog, tenant),
    do: new!(catalog, %{Profile.unrestricted() | tenant: tenant})

  @doc false
  # Returns the view of a running book for a profile or the id of one of its profiles.
  @spec of(atom(), String.t() | Profile.t()) :: t()
  def of(book, profile) do
    book = Book.fetch!(book)

    case of_book(book, Book.profile(book, profile)) do
      {:ok, view} -> view
      {:error, error} -> raise error
    end
  end

  @doc false
  # As `of/2`, but returns errors.
  @spec fetch_of(atom(), String.t() | Profile.t()) :: {:ok, t()} | {:error, Exception.t()}
  def fetch_of(name, profile) do
    with {:ok, book} <- Book.fetch(name),
         {:ok, profile} <- Book.fetch_profile(book, profile),
         do: of_book(book, profile)
  end

  defp of_book(book, profile) do
    profile = %{profile | services: Part.flat(book.parts, :services, [book, profile])}
    with {:ok, view} <- new(book.catalog, profile), do: {:ok, %{view | book: book.name}}
  end

  @doc false
  # The first argument of functions that read or run: a view, or the name of a book with the
  # option `:profile`. Returns the view and the other options, as a keyword list.
  @spec from(Skillbook.view_or_book(), Skillbook.options()) :: {t(), keyword()}
  def from(view_or_book, options), do: from(view_or_book, options, "Skillbook.View.from/2")

  @doc false
  # The same for a function with its name and arity; also checks its other arguments.
  @spec from(Skillbook.view_or_book(), Skillbook.options(), String.t(), keyword()) ::
          {t(), keyword()}
  def from(view_or_book, options, function, arguments \\ [])

  # Nothing to check, as often.
  def from(%__MODULE__{} = view, [], _function, []), do: {view, []}

  def from(view_or_book, options, function, arguments) do
    first = {:view_or_book, {:view_or_book, view_or_book}}
    Arguments.check!(function, [first | arguments] ++ [options: {:options, options}])
    profile_of(view_or_book, Options.keywords(options), function)
  end

  @doc false
  # The same for a function whose only option is `:profile`. Returns the view.
  @spec only_from(Skillbook.view_or_book(), Skillbook.options(), String.t(), keyword()) :: t()
  def only_from(view_or_book, options, function, arguments \\ []) do
    {view, options} = from(view_or_book, options, function, arguments)
    schema = [profile: {"the id of a profile or a profile", fn _ -> false end}]
    with {:error, error} <- Options.validate(options, function, schema), do: raise(error)
    view
  end

  defp profile_of(%__MODULE__{} = view, options, _function) do
    if Keyword.has_key?(options, :profile) do
      raise ArgumentError,
            "expected no option :profile beside a view, which is of the profile " <>
              "#{inspect(view.profile.id)}; pass the name of the book instead of the view"
    end

    {view, options}
  end

  # An id that is `nil` by mistake must not become the rights of "default", nor may a misspelt
  # `:profile`.
  defp profile_of(book, options, function) do
    {profile, rest} = Keyword.pop(options, :profile, "default")

    with false <- Keyword.has_key?(options, :profile),
         name when name != nil <- Enum.find(Keyword.keys(rest), &profile?/1) do
      raise OptionError, subject: function, option: name, problem: :unknown, known: [:profile]
    end

    {of(book, profile), rest}
  end

  defp profile?(option), do: Closest.to(Atom.to_string(option), ["profile"], 0.88) != nil

  @doc """
  Returns the entry of a name or an alias.

      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> {:ok, entry} = Skillbook.View.fetch(Skillbook.View.all(catalog), "tasks.get")
      iex> entry.usage
      "tasks.get --id <id>"
      iex> {:error, error} = Skillbook.View.fetch(Skillbook.View.all(catalog), "taks.get")
      iex> hd(error.suggestions)
      "tasks.get"
  """
  @spec fetch(t(), String.t()) :: {:ok, Entry.t()} | {:error, UnknownSkillError.t()}
  def fetch(%__MODULE__{ref: ref} = view, name) when is_binary(name) do
    case Native.view_fetch(ref, name) do
      nil -> {:error, unknown(view, name)}
      entry -> {:ok, entry}
    end
  end

  def fetch(view, name),
    do: Arguments.check!("Skillbook.View.fetch/2", view: {:view, view}, name: {:text, name})

  @doc false
  # As `fetch/2`, for callers that need no suggestions, which take much longer.
  @spec find(t(), String.t()) :: Entry.t() | nil
  def find(%__MODULE__{ref: ref}, name), do: Native.view_fetch(ref, name)

  @doc ~S"""
  Returns the frontmatter of an entry exactly as it was written, with its `---` lines; `""` if it
  has none. Followed by the entry's `body` it is the whole text of the document.

      iex> page = "---\nname: pdf\ndescription: Work with PDF\nversion: 1.10 # new\n---\n# PDF\n"
      iex> folder = Path.join(System.tmp_dir!(), "skills-#{System.unique_integer([:positive])}")
      iex> {:ok, _} = Skillbook.Document.create(folder, "pdf.md", page)
      iex> {:ok, catalog} = Skillbook.Catalog.load([folder])
      iex> view = Skillbook.View.all(catalog)
      iex> {:ok, frontmatter} = Skillbook.View.frontmatter(view, "pdf")
      iex> frontmatter <> Skillbook.View.fetch!(view, "pdf").body == page
      true
      iex> File.rm_rf!(folder)
      iex> Skillbook.View.fetch!(view, "pdf").data["version"]
      "1.10"
  """
  @spec frontmatter(t(), String.t()) :: {:ok, binary()} | {:error, UnknownSkillError.t()}
  def frontmatter(%__MODULE__{ref: ref} = view, name) when is_binary(name) do
    case Native.view_frontmatter(ref, name) do
      nil -> {:error, unknown(view, name)}
      text -> {:ok, text}
    end
  end

  def frontmatter(view, name),
    do: Arguments.check!("Skillbook.View.frontmatter/2", view: {:view, view}, name: {:text, name})

  @doc false
  # Returns the first skill or note from a file with this name or this title.
  @spec file(t(), String.t(), String.t()) :: Entry.t() | nil
  def file(%__MODULE__{ref: ref}, name, title), do: Native.view_file(ref, name, title)

  @doc "Like `fetch/2`, but raises the error."
  @spec fetch!(t(), String.t()) :: Entry.t()
  def fetch!(view, name) do
    case fetch(view, name) do
      {:ok, entry} -> entry
      {:error, error} -> raise error
    end
  end

  @doc """
  Returns the entries, sorted by name.

  ## Options

    * `:domain` (text) - only the commands of this domain
    * `:kind` (`:command`, `:skill` or `:note`) - only entries of this kind
    * `:limit` (number from 1) - the largest number of entries; all by default
    * `:after` (text) - only entries after this name, such as that of the last entry of a page

  With `:limit`, only the entries up to the last one are read, however many the view has.

  ## Examples

      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> view = Skillbook.View.all(catalog)
      iex> Enum.map(Skillbook.View.entries(view, domain: "memory"), & &1.name)
      ["memory.save", "memory.search"]
      iex> entries = Skillbook.View.entries(view, limit: 2, after: "memory.save")
      iex> Enum.map(entries, & &1.name)
      ["memory.search", "notes.add"]
  """
  @spec entries(t(), Skillbook.options()) :: [Entry.t()]
  def entries(view, options \\ []) do
    Arguments.check!("Skillbook.View.entries/2",
      view: {:view, view},
      options: {:options, options}
    )

    options = Options.keywords(options)

    with {:error, error} <- Options.validate(options, "the entries of a view", entries_schema()),
         do: raise(error)

    {domain, kind, limit} = {options[:domain], options[:kind], options[:limit]}

    if limit || options[:after] do
      stream = view |> stream(after: options[:after]) |> Stream.filter(&of?(&1, domain, kind))
      Enum.take(stream, limit || count(view))
    else
      Native.view_entries(view.ref, domain, kind, false)
    end
  end

  defp of?(entry, domain, kind),
    do: domain in [nil, entry.domain] and kind in [nil, entry.kind]

  @doc false
  # The entries that a model is offered: without those with `disable-model-invocation` and those
  # whose handler does not exist. Takes the options of `entries/2`.
  @spec listed(t(), keyword()) :: [Entry.t()]
  def listed(%__MODULE__{ref: ref}, options \\ []),
    do: Native.view_entries(ref, options[:domain], options[:kind], true)

  # Entries that a stream reads at once: as many as the native function takes without a dirty
  # scheduler.
  @read_at_once 64

  @doc false
  # The entries, sorted by name, as a stream that reads only those that are taken. A page of a
  # list costs as much as its entries, however many the view has.
  #
  #   * `:listed` - only those that a model is offered, as `listed/2`. Default: false
  #   * `:from`, `:after` - the name with which, or after which, it begins. Default: the first one
  @spec stream(t(), keyword()) :: Enumerable.t()
  def stream(%__MODULE__{ref: ref}, options \\ []) do
    listed = Keyword.get(options, :listed, false)

    Stream.resource(
      fn -> if options[:after], do: next(options[:after]), else: options[:from] || "" end,
      fn
        nil ->
          {:halt, nil}

        from ->
          entries = Native.view_page(ref, from, @read_at_once, listed)
          last = if length(entries) == @read_at_once, do: List.last(entries)
          {entries, last && next(last.name)}
      end,
      fn _from -> :ok end
    )
  end

  # The least text after a name.
  defp next(name), do: name <> <<0>>

  @doc false
  # The names of the entries, sorted. Takes `:kind` and `:listed`, as `entries/2` and `stream/2`.
  @spec names(t(), keyword()) :: [String.t()]
  def names(%__MODULE__{ref: ref}, options \\ []),
    do: Native.view_names(ref, options[:kind], Keyword.get(options, :listed, false))

  @doc false
  # Those of these names that no entry has. An alias is no name.
  @spec missing(t(), [String.t()]) :: [String.t()]
  def missing(%__MODULE__{ref: ref}, names), do: Native.view_missing(ref, names)

  @doc false
  # Whether an entry has exactly this name.
  @spec named?(t(), String.t()) :: boolean()
  def named?(view, name), do: missing(view, [name]) == []

  # Rows of one query; rows that the view hides are dropped afterwards.
  @rows_at_once 200

  @doc false
  # The first rows of a table whose names entries have, and for which `shown?` holds. `read`
  # returns so many rows after one, or after none for `nil`. Nearly always the first rows are all
  # shown.
  @spec first_named(
          t(),
          pos_integer(),
          row | nil,
          (pos_integer(), row | nil -> {:ok, [row]} | error),
          (row -> boolean())
        ) :: {:ok, [row]} | error
        when row: %{:name => String.t(), optional(atom()) => term()}, error: {:error, term()}
  def first_named(view, count, last, read, shown? \\ fn _row -> true end),
    do: first_named(view, count, last, read, shown?, min(count, @rows_at_once), [])

  defp first_named(view, count, last, read, shown?, size, done) do
    with {:ok, rows} <- read.(size, last) do
      # Many rows often have few names.
      missing = missing(view, rows |> Enum.map(& &1.name) |> Enum.uniq())
      done = done ++ Enum.filter(rows, &(&1.name not in missing and shown?.(&1)))

      if length(done) >= count or length(rows) < size,
        do: {:ok, Enum.take(done, count)},
        else: first_named(view, count, List.last(rows), read, shown?, @rows_at_once, done)
    end
  end

  @doc false
  # The state that everything which is read from the view depends on, as a part of keys of
  # `Skillbook.Book.Cache`. Profiles with the same rights share it.
  @spec state(t()) :: term()
  def state(%__MODULE__{profile: profile, generation: generation}) do
    {generation, Profile.ids(profile), profile.tenant, profile.grants, Profile.globs(profile),
     profile.services}
  end

  @doc "Returns the domains with at least one visible command, sorted by name."
  @spec domains(t()) :: [Domain.t()]
  def domains(%__MODULE__{ref: ref}), do: Native.view_domains(ref)
  def domains(view), do: Arguments.check!("Skillbook.View.domains/1", view: {:view, view})

  @doc "Returns the number of entries."
  @spec count(t()) :: non_neg_integer()
  def count(%__MODULE__{ref: ref}), do: Native.view_count(ref)
  def count(view), do: Arguments.check!("Skillbook.View.count/1", view: {:view, view})

  @doc """
  Returns the diagnostics of the visible entries, sorted by path and line.

  Diagnostics of whole sources and of files without an entry are only in views with all grants and
  all skills.
  """
  @spec diagnostics(t()) :: [Diagnostic.t()]
  def diagnostics(%__MODULE__{ref: ref}), do: Native.view_diagnostics(ref)
  def diagnostics(view), do: Arguments.check!("Skillbook.View.diagnostics/1", view: {:view, view})

  @doc """
  Returns the patterns of the tools that an entry may use for the view's profile, or `:all`.

  A tool must be allowed by both the `allowed-tools` of the entry and the `:tools` of the profile.
  Of two patterns the narrower one is returned; patterns that overlap only partly allow nothing.
  An entry without `allowed-tools` may use all tools of the profile. Entries of sources with low
  trust cannot extend their rights: with a profile of `:all` tools they may use none.

  A pattern is the name of a tool, or its name with an argument in parentheses. `*` matches any
  characters, and case matters:

    * `Read`, `mcp__github__*` - tools with any argument
    * `Bash(git add:*)` - arguments that start with the words `git add`
    * `Bash(make test)`, `Read(docs/*)` - this argument, or arguments that match

  Invalid patterns, such as `Bash(git`, allow nothing.

      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> {:ok, view} = Skillbook.View.new(catalog, id: "guest", tools: ["Bash", "Write"])
      iex> Skillbook.View.tools(view, "tasks.get")
      {:ok, ["Bash", "Write"]}
      iex> Skillbook.View.tools(Skillbook.View.all(catalog), "tasks.get")
      {:ok, :all}
  """
  @spec tools(t(), String.t()) :: {:ok, :all | [String.t()]} | {:error, UnknownSkillError.t()}
  def tools(%__MODULE__{ref: ref, profile: profile} = view, name) when is_binary(name),
    do: known(Native.view_tools(ref, name, profile.tools), view, name)

  def tools(view, name),
    do: Arguments.check!("Skillbook.View.tools/2", view: {:view, view}, name: {:text, name})

  @doc """
  Returns the declaration of a command's flags.

  It is `nil` if the page has no Flags section, if the section is prose, or if the entry is not a
  command.

      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> {:ok, declaration} = Skillbook.View.flags(Skillbook.View.all(catalog), "tasks.get")
      iex> for flag <- declaration.flags, do: {flag.name, flag.required, flag.type}
      [{"id", true, :value}]
      iex> {:ok, pack} = Skillbook.Catalog.load([Skillbook.Source.builtin(:assistant)])
      iex> Skillbook.View.flags(Skillbook.View.all(pack), "editing")
      {:ok, nil}
  """
  @spec flags(t(), String.t()) :: {:ok, Declaration.t() | nil} | {:error, UnknownSkillError.t()}
  def flags(%__MODULE__{ref: ref} = view, name) when is_binary(name),
    do: known(Native.view_flags(ref, name), view, name)

  def flags(view, name),
    do: Arguments.check!("Skillbook.View.flags/2", view: {:view, view}, name: {:text, name})

  @doc ~S"""
  Returns the `examples` of an entry: requests that should lead to it, and requests that should
  not. Both lists are empty without the field.

  They [test its description](finding.md#test-descriptions) and have no other effect.

      iex> page = "---\nname: rain\ndescription: Forecasts of rain\nexamples:\n" <>
      ...>   "  - Is it going to rain?\n  - not: Write a poem about rain\n---\n# Rain\n"
      iex> folder = Path.join(System.tmp_dir!(), "skills-#{System.unique_integer([:positive])}")
      iex> {:ok, _} = Skillbook.Document.create(folder, "rain.md", page)
      iex> {:ok, catalog} = Skillbook.Catalog.load([folder])
      iex> File.rm_rf!(folder)
      iex> Skillbook.View.examples(Skillbook.View.all(catalog), "rain")
      {:ok, %{requests: ["Is it going to rain?"], not: ["Write a poem about rain"]}}
  """
  @spec examples(t(), String.t()) ::
          {:ok, %{requests: [String.t()], not: [String.t()]}} | {:error, UnknownSkillError.t()}
  def examples(%__MODULE__{ref: ref} = view, name) when is_binary(name),
    do: known(Native.view_examples(ref, name), view, name)

  def examples(view, name),
    do: Arguments.check!("Skillbook.View.examples/2", view: {:view, view}, name: {:text, name})

  defp known(:unknown, view, name), do: {:error, unknown(view, name)}
  defp known(found, _view, _name), do: {:ok, found}

  @doc """
  Returns whether an entry may use a tool with an argument; without an argument, with any.

  The rules are those of `tools/2`. Arguments are compared as text. A pattern with a `*` does not
  match arguments that a shell could read as several commands (``; & | < > ` $`` or a line break),
  nor paths with `..`. Unknown entries may use no tools.

      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> {:ok, view} = Skillbook.View.new(catalog, id: "guest", tools: ["Bash(git log:*)"])
      iex> Skillbook.View.allows_tool?(view, "tasks.get", "Bash", "git log --oneline")
      true
      iex> Skillbook.View.allows_tool?(view, "tasks.get", "Bash", "git log; ls")
      false
      iex> Skillbook.View.allows_tool?(view, "tasks.get", "Bash")
      false
  """
  @spec allows_tool?(t(), String.t(), String.t(), String.t() | nil) :: boolean()
  def allows_tool?(view, name, tool, argument \\ nil) do
    Arguments.check!("Skillbook.View.allows_tool?/4",
      view: {:view, view},
      name: {:text, name},
      tool: {:text, tool},
      argument: {{:or_nil, :text}, argument}
    )

    case tools(view, name) do
      {:ok, :all} -> true
      {:ok, tools} -> Native.tools_allow(tools, tool, argument)
      {:error, _} -> false
    end
  end

  @doc false
  # Returns the row number in the database of the entry of a name; `nil` for a file or no entry.
  @spec record(t(), String.t()) :: pos_integer() | nil
  def record(%__MODULE__{ref: ref}, name), do: Native.view_record(ref, name)

  @doc false
  # Returns the names of entries and domains that a text means in another spelling: in another
  # case, with other separators, as a title.
  @spec spelled(t(), String.t()) :: [String.t()]
  def spelled(%__MODULE__{ref: ref}, text), do: Native.view_spelled(ref, text)

  @doc false
  # Domains are suggested only where a path may name one, since they cannot be run.
  @spec unknown(t(), String.t(), domains: boolean()) :: UnknownSkillError.t()
  def unknown(%__MODULE__{ref: ref}, name, options \\ []) do
    among = if Keyword.get(options, :domains, false), do: :paths, else: :entries
    %UnknownSkillError{name: name, suggestions: Native.view_suggest(ref, name, among)}
  end

  @doc false
  # Returns up to three names of the store's entries that are similar to a name.
  @spec suggest_stored(t(), String.t()) :: [String.t()]
  def suggest_stored(%__MODULE__{ref: ref}, name), do: Native.view_suggest(ref, name, :stored)

  defp entries_schema do
    [
      domain: {"text or nil", &(is_nil(&1) or is_binary(&1))},
      kind: {":command, :skill, :note or nil", &(&1 in [:command, :skill, :note, nil])},
      limit: Options.positive_or_nil(),
      after: {"a name or nil", &(is_nil(&1) or Options.text?(&1))}
    ]
  end
end
