defmodule Skillbook.Help do
  @moduledoc """
  What `get_skill` answers, from the list of everything down to one file of a skill.

  ## Examples

      iex> {:ok, catalog} = Skillbook.Catalog.load(["test/support/fixtures/skills"])
      iex> view = Skillbook.View.all(catalog)
      iex> {:ok, text} = Skillbook.Help.get(view, "haiku")
      iex> text
      "Write three lines of five, seven and five syllables."
      iex> Skillbook.Help.get(view, "") == Skillbook.Help.top_level(view)
      true
      iex> {:error, error} = Skillbook.Help.get(view, "haikuu")
      iex> error.suggestions
      ["haiku"]
  """

  alias Skillbook.{Entry, Native, UnknownSkillError, View}

  @type answer :: {:ok, String.t()} | {:error, UnknownSkillError.t()}

  @doc """
  The answer to `get_skill: PATH`.

  A path is, in this order: nothing (`""` or `nil`), an entry's name, `DOMAIN.all`, a domain, an alias, or a skill's
  name and one of its files (`pdf-processing/references/forms.md`). A skill and a domain of the same name come together.
  A file is shown up to 256 KiB if it is UTF-8 text; of others the answer says what they are.
  """
  @spec get(View.t(), String.t() | nil) :: answer()
  def get(view, nil), do: get(view, "")
  def get(%View{ref: ref} = view, path), do: answer(Native.view_help(ref, path), view, path)

  @doc false
  # The entries whose own texts the answer to a path that has one holds, in the order in which `get/2` looks a path up.
  @spec entries(View.t(), String.t()) :: [Entry.t()]
  def entries(view, path) do
    path = String.trim(path)
    found = with {:error, _} <- View.fetch(view, path), do: nil

    case found do
      {:ok, %Entry{name: ^path} = entry} -> [entry]
      other -> entries_of_all(view, path) || if(domain?(view, path), do: [], else: own(other))
    end
  end

  @doc false
  # The skill of which the answer to a path shows a file.
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
      do: view |> View.entries(domain: name) |> Enum.reject(& &1.hidden_from_model)
  end

  defp domain?(%View{ref: ref}, name), do: Native.view_help_domain(ref, name) != :unknown

  defp own({:ok, entry}), do: [entry]
  defp own(nil), do: []

  @doc "All domains and all entries that belong to none."
  @spec top_level(View.t()) :: answer()
  def top_level(view), do: get(view, "")

  @doc "A domain's index."
  @spec domain(View.t(), String.t()) :: answer()
  def domain(%View{ref: ref} = view, name),
    do: answer(Native.view_help_domain(ref, name), view, name)

  @doc "An entry's body and, for a skill with other files beside it, their list."
  @spec skill(View.t(), String.t()) :: answer()
  def skill(%View{ref: ref} = view, name),
    do: answer(Native.view_help_skill(ref, name), view, name)

  @doc "The bodies of all commands of a domain, in the order of their names."
  @spec domain_all(View.t(), String.t()) :: answer()
  def domain_all(%View{ref: ref} = view, name),
    do: answer(Native.view_help_domain_all(ref, name), view, name)

  defp answer(:unknown, view, name), do: {:error, View.unknown(view, name, domains: true)}
  defp answer(text, _view, _name), do: {:ok, text}
end
