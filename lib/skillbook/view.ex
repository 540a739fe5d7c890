defmodule Skillbook.View do
  @moduledoc """
  A catalog's generation as one profile may see it.

  Everything that reads, reads through a view. An entry that the view does not show is, through it, the same as one
  that was never written: in results, errors, suggestions, counts, listings and diagnostics. A view keeps its generation
  when the catalog is loaded again.

  ## Fields

    * `:ref` - the view in the native library
    * `:book` - the book that it was made by, or `nil`
    * `:profile` - the profile
    * `:generation` - the number of the generation

  ## Examples

      iex> {:ok, catalog} = Skillbook.Catalog.load(["test/support/fixtures/skills"])
      iex> {:ok, view} = Skillbook.View.new(catalog, id: "guest", skills: ["email.*"])
      iex> Enum.map(Skillbook.View.entries(view), & &1.name)
      ["email.draft", "email.search"]
      iex> Enum.map(Skillbook.View.domains(view), & &1.name)
      ["email"]
  """

  alias Skillbook.Support.Options

  alias Skillbook.{
    Book,
    Catalog,
    Declaration,
    Diagnostic,
    Domain,
    Entry,
    Native,
    OptionError,
    Profile,
    UnknownSkillError
  }

  @type t :: %__MODULE__{
          ref: reference(),
          book: atom() | nil,
          profile: Profile.t(),
          generation: pos_integer()
        }

  @enforce_keys [:ref, :profile, :generation]
  defstruct [:ref, :book, :profile, :generation]

  @doc "The current generation of a catalog as a profile may see it; the profile may also be options of `Skillbook.Profile`."
  @spec new(Catalog.t(), Profile.t() | keyword()) :: {:ok, t()} | {:error, OptionError.t()}
  def new(%Catalog{ref: ref}, profile) do
    with {:ok, profile} <- Profile.new(profile) do
      case Native.view_new(ref, Profile.ids(profile), profile.grants, Profile.globs(profile)) do
        {:ok, view, generation} ->
          {:ok, %__MODULE__{ref: view, profile: profile, generation: generation}}

        {:error, {:bad_glob, glob, reason}} ->
          problem = {:invalid, "globs (#{reason})", glob}
          {:error, %OptionError{subject: "a profile", option: :skills, problem: problem}}
      end
    end
  end

  @doc """
  The unrestricted view of a catalog or of a running book: trusted code says so by name.

      iex> {:ok, catalog} = Skillbook.Catalog.load(["test/support/fixtures/skills"])
      iex> Skillbook.View.count(Skillbook.View.all(catalog)) == Skillbook.Catalog.count(catalog)
      true
  """
  @spec all(Catalog.t() | atom()) :: t()
  def all(book) when is_atom(book), do: %{all(Book.fetch!(book).catalog) | book: book}

  def all(%Catalog{} = catalog) do
    {:ok, view} = new(catalog, Profile.unrestricted())
    view
  end

  @doc false
  # The view of a running book for the id of one of its profiles, or for a profile.
  @spec of(atom(), String.t() | Profile.t()) :: t()
  def of(book, profile) do
    book = Book.fetch!(book)

    case new(book.catalog, Book.profile(book, profile)) do
      {:ok, view} -> %{view | book: book.name}
      {:error, %OptionError{} = error} -> raise error
    end
  end

  @doc """
  The entry of a name or an alias.

      iex> {:ok, catalog} = Skillbook.Catalog.load(["test/support/fixtures/skills"])
      iex> {:ok, entry} = Skillbook.View.fetch(Skillbook.View.all(catalog), "email.send")
      iex> entry.usage
      "email.send --to ADDR --subject TEXT --body TEXT"
      iex> {:error, error} = Skillbook.View.fetch(Skillbook.View.all(catalog), "emial.send")
      iex> error.suggestions
      ["email.send"]
  """
  @spec fetch(t(), String.t()) :: {:ok, Entry.t()} | {:error, UnknownSkillError.t()}
  def fetch(%__MODULE__{ref: ref} = view, name) when is_binary(name) do
    case Native.view_fetch(ref, name) do
      nil -> {:error, unknown(view, name)}
      entry -> {:ok, entry}
    end
  end

  @doc false
  # The first skill or note of a file that has one of these texts as its name or its title.
  @spec file(t(), String.t(), String.t()) :: Entry.t() | nil
  def file(%__MODULE__{ref: ref}, name, title), do: Native.view_file(ref, name, title)

  @doc "As `fetch/2`, but raises the error."
  @spec fetch!(t(), String.t()) :: Entry.t()
  def fetch!(view, name) do
    case fetch(view, name) do
      {:ok, entry} -> entry
      {:error, error} -> raise error
    end
  end

  @doc """
  The entries in the order of their names.

  ## Options

    * `:domain` - only the commands of this domain
    * `:kind` - only entries of this kind: `:command`, `:skill` or `:note`
  """
  @spec entries(t(), keyword()) :: [Entry.t()]
  def entries(%__MODULE__{ref: ref}, options \\ []) do
    with {:error, error} <- Options.validate(options, "the entries of a view", entries_schema()),
         do: raise(error)

    Native.view_entries(ref, options[:domain], options[:kind])
  end

  @doc "The domains that have a command which the view shows, in the order of their names."
  @spec domains(t()) :: [Domain.t()]
  def domains(%__MODULE__{ref: ref}), do: Native.view_domains(ref)

  @doc "How many entries the view shows."
  @spec count(t()) :: non_neg_integer()
  def count(%__MODULE__{ref: ref}), do: Native.view_count(ref)

  @doc """
  What was found out about the entries that the view shows, by path and line.

  Diagnostics about files that are no entries, and about whole sources, are for views with all grants and all skills.
  """
  @spec diagnostics(t()) :: [Diagnostic.t()]
  def diagnostics(%__MODULE__{ref: ref}), do: Native.view_diagnostics(ref)

  @doc """
  The tools that an entry may use on behalf of the view's profile, or `:all`.

  They are what the entry's `allowed-tools` and the profile's `:tools` both allow; of two patterns the narrower is kept,
  and two that overlap only in part allow nothing. If the profile's tools are `:all`, it is what the entry lists. An entry
  without `allowed-tools` may use what the profile has. What a source of the trust `:low` lists allows nothing by itself:
  with a profile of `:all` tools its entries may use none.

  A tool is its name, or its name with an argument in parentheses. `*` stands for any characters:

    * `Read`, `mcp__github__*` - a tool, tools, with any argument
    * `Bash(git add:*)` - the words `git add`, and whatever follows them
    * `Bash(make test)`, `Read(docs/*)` - this argument, arguments of this form

  Case matters. What cannot be read, such as `Bash(git`, allows nothing.

      iex> {:ok, catalog} = Skillbook.Catalog.load(["test/support/fixtures/skills"])
      iex> {:ok, view} = Skillbook.View.new(catalog, id: "guest", tools: ["Bash", "Write"])
      iex> Skillbook.View.tools(view, "pdf-processing")
      {:ok, ["Bash(pdftk:*)"]}
      iex> Skillbook.View.tools(view, "haiku")
      {:ok, ["Bash", "Write"]}
      iex> Skillbook.View.tools(Skillbook.View.all(catalog), "haiku")
      {:ok, :all}
  """
  @spec tools(t(), String.t()) :: {:ok, :all | [String.t()]} | {:error, UnknownSkillError.t()}
  def tools(%__MODULE__{ref: ref, profile: profile} = view, name) when is_binary(name) do
    case Native.view_tools(ref, name, profile.tools) do
      :unknown -> {:error, unknown(view, name)}
      tools -> {:ok, tools}
    end
  end

  @doc """
  The flags that a command's page declares, or `nil`: its Flags section is prose, there is none, or the entry is no command.

      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> {:ok, declaration} = Skillbook.View.flags(Skillbook.View.all(catalog), "tasks.get")
      iex> for flag <- declaration.flags, do: {flag.name, flag.required, flag.type}
      [{"id", true, :value}]
      iex> Skillbook.View.flags(Skillbook.View.all(catalog), "workflows.weekly_review")
      {:ok, nil}
  """
  @spec flags(t(), String.t()) :: {:ok, Declaration.t() | nil} | {:error, UnknownSkillError.t()}
  def flags(%__MODULE__{ref: ref} = view, name) when is_binary(name) do
    case Native.view_flags(ref, name) do
      :unknown -> {:error, unknown(view, name)}
      declaration -> {:ok, declaration}
    end
  end

  @doc """
  Whether an entry may use a tool with an argument, by `tools/2`; without an argument, whether it may use it with any.

  Arguments are compared as texts. A pattern with a `*` allows none in which a shell would see more than one command
  (``; & | < > ` $`` or a line break), and none with a path that leads upwards (`..`). An unknown entry may use nothing.

      iex> {:ok, catalog} = Skillbook.Catalog.load(["test/support/fixtures/skills"])
      iex> view = Skillbook.View.all(catalog)
      iex> Skillbook.View.allows_tool?(view, "pdf-processing", "Bash", "pdftk in.pdf dump_data")
      true
      iex> Skillbook.View.allows_tool?(view, "pdf-processing", "Bash", "pdftk in.pdf; ls")
      false
      iex> Skillbook.View.allows_tool?(view, "pdf-processing", "Bash")
      false
  """
  @spec allows_tool?(t(), String.t(), String.t(), String.t() | nil) :: boolean()
  def allows_tool?(view, name, tool, argument \\ nil) when is_binary(tool) do
    case tools(view, name) do
      {:ok, :all} -> true
      {:ok, tools} -> Native.tools_allow(tools, tool, argument)
      {:error, _} -> false
    end
  end

  @doc false
  # The number in the database of the entry that it uses under a name; `nil` for one of a file, and for none.
  @spec record(t(), String.t()) :: pos_integer() | nil
  def record(%__MODULE__{ref: ref}, name), do: Native.view_record(ref, name)

  @doc false
  # Domains are suggested only where one may have been meant: no command runs them.
  @spec unknown(t(), String.t(), domains: boolean()) :: UnknownSkillError.t()
  def unknown(%__MODULE__{ref: ref}, name, options \\ []) do
    domains? = Keyword.get(options, :domains, false)
    %UnknownSkillError{name: name, suggestions: Native.view_suggest(ref, name, domains?)}
  end

  defp entries_schema do
    [
      domain: {"text or nil", &(is_nil(&1) or is_binary(&1))},
      kind: {":command, :skill, :note or nil", &(&1 in [:command, :skill, :note, nil])}
    ]
  end
end
