defmodule Skillbook.Book.Builtins do
  @moduledoc false
  # The sources of a book's built-in skills: all of them, none, or those that the option
  # `:builtins` names.
  #
  # Commands that need vaults or connections are left out of books without these, since they would
  # only fill the prompt. A list may name the domains of connections all the same.

  alias Skillbook.Support.Closest
  alias Skillbook.{Native, OptionError, Part, Source}

  @doc """
  Returns the sources, from the options `:builtins` and `:vaults` of a book and from the packs of
  its parts.
  """
  @spec sources(keyword(), [Part.pack()]) :: {:ok, [Source.t()]} | {:error, OptionError.t()}
  def sources(options, packs) do
    wanted = Keyword.get(options, :builtins, true)
    vaults = if options[:vaults] in [nil, []], do: [], else: [{Source.builtin(:vaults), :all}]
    sources = [{Source.builtin(), :all}] ++ vaults ++ Enum.flat_map(packs, &pack(&1, wanted))

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

  @doc "Whether a value can be the option `:builtins`."
  @spec valid?(term()) :: boolean()
  def valid?(wanted) when is_boolean(wanted), do: true

  def valid?(wanted),
    do: is_list(wanted) and Enum.all?(wanted, &(is_binary(&1) or is_atom(&1)))

  # The name of a vendor means the domains of its services.
  defp expand(name, packs) when is_atom(name), do: expand(Atom.to_string(name), packs)

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

  defp available({source, :all}), do: source
  defp available({source, domains}), do: %{source | available: Enum.map(domains, &(&1 <> ".*"))}

  defp select(wanted, sources, packs) do
    names = for {_source, names} <- Enum.map(sources, &names/1), name <- names, do: name
    domains = names |> Enum.map(&(&1 |> String.split(".") |> hd())) |> Enum.uniq()

    globs =
      for {wanted, name} <- wanted,
          do: {wanted, if(name in domains, do: name <> ".*", else: name)}

    known = for pack <- packs, name <- pack.domains ++ Map.keys(pack.names), do: name

    with :ok <- check(globs, names, Enum.uniq(domains ++ known)) do
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
    case Closest.to(wanted, known ++ names) do
      nil -> "the domains #{Enum.join(known, ", ")} or globs over their commands"
      near -> "domains of built-in skills or globs over their names, did you mean #{near}?"
    end
  end

  defp invalid(expected, value) do
    problem = {:invalid, expected, value}
    {:error, %OptionError{subject: "a book", option: :builtins, problem: problem}}
  end
end
