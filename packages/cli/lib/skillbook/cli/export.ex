defmodule Skillbook.CLI.Export do
  @moduledoc false
  # `skillbook export`: writes entries as folders, with `Skillbook.Package.export/4`.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{Packages, Session, Terminal}
  alias Skillbook.{Package, View}

  @impl true
  def switches, do: [to: :string, force: :boolean, json: :boolean]

  @impl true
  def args([]), do: {:error, "`export` expects the names of skills, commands or notes"}
  def args(names), do: {:ok, names}

  @impl true
  def run(%{args: names, flags: flags} = options) do
    if flags[:to] do
      Session.with_book(options, :read, fn book ->
        export(Session.view(book, options), names, flags)
      end)
    else
      Terminal.usage_error("`export` expects --to, the folder to write to", "export --help")
    end
  end

  defp export(view, names, flags) do
    results =
      for name <- names,
          do: {name, Package.export(view, name, flags[:to], Keyword.take(flags, [:force]))}

    {done, failed} = Enum.split_with(results, &match?({_, {:ok, _}}, &1))
    paths = for {_, {:ok, path}} <- done, do: path

    if flags[:json],
      do: Terminal.put_json(paths),
      else: Enum.each(paths, &Terminal.put(Terminal.line(&1)))

    for {name, _} <- done,
        %{labels: [_ | _] = labels} <- [View.fetch!(view, name)],
        do: warn_without_labels(name, labels)

    for {_, {:error, error}} <- failed, do: Packages.complain(error, "export")
    if failed == [], do: 0, else: 1
  end

  # The folder is readable without the labels.
  defp warn_without_labels(name, labels),
    do:
      Terminal.complain(
        "#{name} was written without its visibility labels: #{Enum.join(labels, ", ")}"
      )
end
