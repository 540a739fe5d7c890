defmodule Skillbook.Help do
  @moduledoc """
  Answers `get_skill`, from the list of all skills to a single file of a skill.

  ## Examples

      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> view = Skillbook.View.all(catalog)
      iex> {:ok, text} = Skillbook.Help.get(view, "tasks.get")
      iex> text =~ "# tasks.get"
      true
      iex> Skillbook.Help.get(view, "") == Skillbook.Help.top_level(view)
      true
      iex> {:error, error} = Skillbook.Help.get(view, "taks")
      iex> hd(error.suggestions)
      "tasks"
  """

  alias Skillbook.{Entry, Native, Part, UnknownSkillError, View}

  @typedoc """
  A text, or the reason why there is none. A skill of an MCP server, whose text is fetched when it
  is read, may fail with another exception.
  """
  @type answer :: {:ok, String.t()} | {:error, UnknownSkillError.t() | Exception.t()}

  @doc """
  Returns the answer to `get_skill: PATH`.

  A path is one of these, tried in this order:

    * `""` or `nil` - the list of all domains and skills
    * the name of an entry - its page. A domain of the same name is added
    * `DOMAIN.all` - the pages of all commands of a domain
    * a domain - its index
    * an alias of an entry
    * the name of a skill and one of its files, such as `pdf-processing/references/forms.md` - the
      file, if it is UTF-8 text of up to 256 KiB; otherwise its size and type
    * the title of an entry, or another spelling of a name, title or alias: case does not matter,
      and blanks, dashes and punctuation are equal. If it means several names, the error lists
      them
  """
  @spec get(Skillbook.view_or_book(), String.t() | nil, Skillbook.options()) :: answer()
  def get(view_or_book, path, options \\ []) do
    path_type = [path: {{:or_nil, :text}, path}]
    view = View.only_from(view_or_book, options, "Skillbook.Help.get/3", path_type)
    with {:ok, {_path, text}} <- find(view, path || ""), do: {:ok, text}
  end

  @doc false
  # As `get/3`, with the path that was found: for another spelling, the name.
  @spec find(View.t(), String.t()) ::
          {:ok, {String.t(), String.t()}} | {:error, UnknownSkillError.t() | Exception.t()}
  def find(view, path) do
    with {:error, %UnknownSkillError{} = error} <- find_exact(view, path) do
      case View.spelled(view, path) do
        [] -> {:error, error}
        [name] -> find_exact(view, name)
        names -> {:error, UnknownSkillError.ambiguous(path, names)}
      end
    end
  end

  @doc false
  # As `find/2`, without other spellings.
  @spec find_exact(View.t(), String.t()) ::
          {:ok, {String.t(), String.t()}} | {:error, UnknownSkillError.t() | Exception.t()}
  def find_exact(%View{ref: ref} = view, path) do
    answer =
      with :other <- elsewhere(view, path),
           do: answer(Native.view_help(ref, path), view, path)

    with {:ok, text} <- answer, do: {:ok, {path, text}}
  end

  @doc false
  # The text of a page that a part keeps elsewhere, `:other` for any other.
  @spec elsewhere(View.t(), String.t()) :: {:ok, String.t()} | {:error, Exception.t()} | :other
  def elsewhere(%View{functions: functions}, _path) when functions == %{}, do: :other
  def elsewhere(view, path), do: Part.first(Part.of(view.book), :text, [view, path])

  @doc false
  # Returns the entries whose texts the answer to a path contains. Tries the path in the order of
  # `get/3`.
  @spec entries(View.t(), String.t()) :: [Entry.t()]
  def entries(view, path) do
    path = String.trim(path)
    entry = with {:error, _} <- View.fetch(view, path), do: nil

    case entry do
      {:ok, %Entry{name: ^path} = entry} -> [entry]
      other -> entries_of_all(view, path) || if(domain?(view, path), do: [], else: own(other))
    end
  end

  @doc false
  # Returns the skill of a file, if the path is that of a file.
  @spec skills(View.t(), String.t()) :: [Entry.t()]
  def skills(view, path) do
    path = String.trim(path)
    names = String.split(path, "/")

    if length(names) > 1 and entries(view, path) == [] do
      skill = fn count ->
        with {:error, _} <- View.fetch(view, names |> Enum.take(count) |> Enum.join("/")), do: nil
      end

      for {:ok, entry} <- [Enum.find_value((length(names) - 1)..1//-1, skill)], do: entry
    else
      []
    end
  end

  defp entries_of_all(view, path) do
    name = String.replace_suffix(path, ".all", "")

    if name != path and domain?(view, name),
      do: View.listed(view, domain: name)
  end

  defp domain?(%View{ref: ref}, name), do: Native.view_help_domain(ref, name) != :unknown

  defp own({:ok, entry}), do: [entry]
  defp own(nil), do: []

  @doc "Returns the list of all domains and of the entries without a domain."
  @spec top_level(Skillbook.view_or_book(), Skillbook.options()) :: answer()
  def top_level(view_or_book, options \\ []), do: get(view_or_book, "", options)

  @doc "Returns the index of a domain."
  @spec domain(Skillbook.view_or_book(), String.t(), Skillbook.options()) :: answer()
  def domain(view_or_book, name, options \\ []),
    do: part(view_or_book, name, options, "domain/3", &Native.view_help_domain/2)

  @doc "Returns the body of an entry, with a list of its files for a skill that has some."
  @spec skill(Skillbook.view_or_book(), String.t(), Skillbook.options()) :: answer()
  def skill(view_or_book, name, options \\ []),
    do: part(view_or_book, name, options, "skill/3", &Native.view_help_skill/2, &elsewhere/2)

  @doc "Returns the bodies of all commands of a domain, sorted by name."
  @spec domain_all(Skillbook.view_or_book(), String.t(), Skillbook.options()) :: answer()
  def domain_all(view_or_book, name, options \\ []),
    do: part(view_or_book, name, options, "domain_all/3", &Native.view_help_domain_all/2)

  defp part(view_or_book, name, options, function, read, first \\ &other/2) do
    type = [name: {:text, name}]
    view = View.only_from(view_or_book, options, "Skillbook.Help." <> function, type)
    with :other <- first.(view, name), do: answer(read.(view.ref, name), view, name)
  end

  defp other(_view, _name), do: :other

  defp answer(:unknown, view, name), do: {:error, View.unknown(view, name, domains: true)}
  defp answer(text, _view, _name), do: {:ok, text}
end
