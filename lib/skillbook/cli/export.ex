defmodule Skillbook.CLI.Export do
  @moduledoc false
  @behaviour Skillbook.CLI.Command

  alias Skillbook.CLI.{Book, Packages, Terminal}
  alias Skillbook.{JSON, Package}

  @impl true
  def switches, do: [to: :string, force: :boolean, json: :boolean]

  @impl true
  def args([]), do: {:error, "`export` expects the names of skills, commands or notes"}
  def args(names), do: {:ok, names}

  @impl true
  def summary, do: "write entries as folders in the Agent Skills format"

  @impl true
  def help do
    """
    Usage: skillbook [OPTIONS] export NAME... --to FOLDER [--force]

    Writes each entry that the profile may see as a folder below FOLDER: SKILL.md with the fields of the Agent Skills format,
    and the skill's other files.

      --to FOLDER       where to
      --force           replace what is there already
      --json            the folders, as a JSON array

    Examples:
      skillbook export pdf-processing --to ~/shared-skills
      skillbook --dir notes export shopping --to out --force
    """
  end

  @impl true
  def run(%{args: names, flags: flags} = options) do
    if flags[:to] do
      Book.with_book(options, :read, fn book -> export(Book.view(book, options), names, flags) end)
    else
      Terminal.complain("`export` expects --to, the folder to write to\nSee: skillbook export --help")
      2
    end
  end

  defp export(view, names, flags) do
    {done, failed} =
      names
      |> Enum.map(&Package.export(view, &1, flags[:to], Keyword.take(flags, [:force])))
      |> Enum.split_with(&match?({:ok, _}, &1))

    paths = for {:ok, path} <- done, do: path
    if flags[:json], do: paths |> JSON.encode() |> Terminal.put(), else: Enum.each(paths, &Terminal.put/1)
    for {:error, error} <- failed, do: Packages.complain(error, "export")
    if failed == [], do: 0, else: 1
  end
end
