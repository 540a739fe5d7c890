defmodule Skillbook.Book.Builtins do
  @moduledoc false
  # The sources of a book's built-in skills: none, all of them, or those that the option
  # `:builtins` names. None is the default, since each of them is one more tool for the model.
  #
  # Commands that need vaults or connections are left out of books without these, since they would
  # only fill the prompt. A list may name the domains of connections all the same. The skills of
  # the pack `assistant` are only there if a list names the pack or one of them.

  alias Skillbook.Support.Closest
  alias Skillbook.{Native, OptionError, Part, Source}

  @assistant "assistant"

  @doc """
  Returns the sources, from the option `:builtins` of a book and from the packs of its parts.
  """
  @spec sources(keyword(), [Part.pack()]) :: {:ok, [Source.t()]} | {:error, OptionError.t()}
  def sources(options, packs) do
    wanted = Keyword.get(options, :builtins, false)
    packs_of = Enum.flat_map(packs, &pack(&1, wanted))
    sources = [{Source.builtin(), :all}] ++ packs_of ++ assistant(wanted, packs)

    case wanted do
      true -> {:ok, Enum.map(sources, &available/1)}
      none when none in [false, []] -> {:ok, []}
      wanted -> wanted |> Enum.flat_map(&expand(&1, packs)) |> select(sources, packs)
    end
  end

  defp pack(pack, wanted) do
    case Enum.uniq(pack.of ++ named(wanted, pack)) do
      [] -> []
      domains -> [{pack.source, domains}]
    end
  end

  @doc """
  Returns the item of `:builtins` that adds a built-in skill, or a domain of them; `nil` if none
  has the name.
  """
  @spec item(String.t(), [Part.pack()]) :: String.t() | nil
  def item(name, packs) do
    sources = [{Source.builtin(), :all} | Enum.map(packs, &{&1.source, &1.domains})]
    names = for source <- sources, {_source, names} = names(source), name <- names, do: name

    cond do
      name in skills() -> name
      name in names -> name |> String.split(".") |> hd()
      Enum.any?(names, &in_domain?(&1, name)) -> name
      true -> nil
    end
  end

  @doc "Whether a value can be the option `:builtins`."
  @spec valid?(term()) :: boolean()
  def valid?(wanted) when is_boolean(wanted), do: true

  def valid?(wanted),
    do: is_list(wanted) and Enum.all?(wanted, &(is_binary(&1) or is_atom(&1)))

  # The name of a vendor means the domains of its services.
  defp expand(name, packs) when is_atom(name), do: expand(Atom.to_string(name), packs)

  defp expand(@assistant, _packs), do: for(name <- skills(), do: {@assistant, name})

  defp expand(name, packs) do
    domains = Enum.find_value(packs, [name], & &1.names[name])
    for domain <- domains, do: {name, domain}
  end

  # The domains of a pack that the list names.
  defp named(wanted, _pack) when is_boolean(wanted), do: []

  defp named(wanted, pack) do
    names = for name <- wanted, {_wanted, name} <- expand(name, [pack]), do: name
    Enum.filter(pack.domains, fn domain -> Enum.any?(names, &in_domain?(&1, domain)) end)
  end

  defp in_domain?(name, domain), do: name == domain or String.starts_with?(name, domain <> ".")

  # The skills of the pack that the list names, each a folder.
  defp assistant(wanted, _packs) when is_boolean(wanted), do: []

  defp assistant(wanted, packs) do
    names = for name <- wanted, {_wanted, name} <- expand(name, packs), do: name

    case Enum.filter(skills(), &(&1 in names)) do
      [] -> []
      skills -> [{Source.builtin(:assistant), {:skills, skills}}]
    end
  end

  defp skills do
    for page <- Path.wildcard(Path.join(Source.builtin(:assistant).path, "*/SKILL.md")),
        do: page |> Path.dirname() |> Path.basename()
  end

  defp available({source, :all}), do: source
  defp available({source, domains}), do: %{source | available: Enum.map(domains, &(&1 <> ".*"))}

  defp select(wanted, sources, packs) do
    names = for {_source, names} <- Enum.map(sources, &names/1), name <- names, do: name

    domains =
      Enum.uniq(for name <- names, [domain, _action] <- [String.split(name, ".")], do: domain)

    globs =
      for {wanted, name} <- wanted,
          do: {wanted, if(name in domains, do: name <> ".*", else: name)}

    known = for pack <- packs, name <- pack.domains ++ Map.keys(pack.names), do: name

    with :ok <- check(globs, names, Enum.uniq(Enum.sort(domains) ++ known) ++ [@assistant]) do
      {:ok, Enum.flat_map(sources, &narrowed(&1, Enum.map(globs, fn {_, glob} -> glob end)))}
    end
  end

  # Each source gets the globs that select something in it. A source of some domains keeps to
  # them: its globs become names.
  defp narrowed({source, :all}, globs) do
    {source, names} = names({source, :all})

    case Enum.filter(globs, &match?({:ok, [_ | _]}, Native.globs_filter([&1], names))) do
      [] -> []
      globs -> [%{source | available: globs}]
    end
  end

  defp narrowed(source, globs) do
    {source, names} = names(source)

    case Native.globs_filter(globs, names) do
      {:ok, []} -> []
      {:ok, names} -> [%{source | available: names}]
    end
  end

  # The page of `tasks.create` is `tasks/create.md`, as a test checks.
  defp names({source, {:skills, skills}}), do: {source, skills}

  defp names({%Source{path: folder} = source, domains}) do
    names =
      for path <- Path.wildcard(Path.join(folder, "*/*.md")),
          Path.basename(path) != "SKILL.md",
          [domain, file] = path |> Path.relative_to(folder) |> Path.split(),
          domains == :all or domain in domains,
          do: domain <> "." <> Path.rootname(file)

    {source, names}
  end

  # A name that selects nothing is a mistake.
  defp check(globs, names, known) do
    Enum.find_value(globs, :ok, fn {wanted, glob} ->
      case Native.globs_filter([glob], names) do
        {:ok, [_ | _]} -> nil
        {:ok, []} -> invalid(expected(wanted, names, known), wanted)
        {:error, {_glob, reason}} -> invalid("globs (#{reason})", wanted)
      end
    end)
  end

  defp expected(wanted, names, known) do
    case Closest.to(wanted, known ++ names ++ skills()) do
      nil -> "the domains #{Enum.join(known, ", ")} or globs over their commands"
      near -> "domains of built-in skills or globs over their names, did you mean #{near}?"
    end
  end

  defp invalid(expected, value) do
    problem = {:invalid, expected, value}
    {:error, %OptionError{subject: "a book", option: :builtins, problem: problem}}
  end
end
