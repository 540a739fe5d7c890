defmodule Skillbook.CLI.Export do
  @moduledoc false
  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{Packages, Session, Terminal}
  alias Skillbook.Support.JSON
  alias Skillbook.{Package, View}

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
      Session.with_book(options, :read, fn book ->
        export(Session.view(book, options), names, flags)
      end)
    else
      Terminal.complain(
        "`export` expects --to, the folder to write to\nSee: skillbook export --help"
      )

      2
    end
  end

  defp export(view, names, flags) do
    results =
      for name <- names,
          do: {name, Package.export(view, name, flags[:to], Keyword.take(flags, [:force]))}

    {done, failed} = Enum.split_with(results, &match?({_, {:ok, _}}, &1))
    paths = for {_, {:ok, path}} <- done, do: path

    if flags[:json],
      do: paths |> JSON.encode() |> Terminal.put(),
      else: Enum.each(paths, &Terminal.put/1)

    for {name, _} <- done,
        %{labels: [_ | _] = labels} <- [View.fetch!(view, name)],
        do: bare(name, labels)

    for {_, {:error, error}} <- failed, do: Packages.complain(error, "export")
    if failed == [], do: 0, else: 1
  end

  # What only few could read is now in a folder that says nothing of it.
  defp bare(name, labels),
    do:
      Terminal.complain(
        "#{name} was written without its visibility labels: #{Enum.join(labels, ", ")}"
      )
end
