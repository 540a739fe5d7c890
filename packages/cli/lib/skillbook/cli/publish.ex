defmodule Skillbook.CLI.Publish do
  @moduledoc false
  # `skillbook publish`: writes entries for a web server, or sends them to a running book, with
  # `Skillbook.Package.publish/3`.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{Packages, Session, Terminal}
  alias Skillbook.{Package, View}

  @impl true
  def switches, do: [to: :string, all: :boolean, force: :boolean, json: :boolean]

  @impl true
  def args(names), do: {:ok, names}

  @impl true
  def run(%{args: names, flags: flags} = options) do
    cond do
      flags[:to] == nil ->
        Terminal.usage_error("`publish` expects --to, a folder or an address", "publish --help")

      names == [] == (flags[:all] != true) ->
        Terminal.usage_error("`publish` expects either names or --all", "publish --help")

      true ->
        Session.with_book(options, :read, &publish(Session.view(&1, options), names, options))
    end
  end

  defp publish(view, names, %{flags: flags} = options) do
    names = if names == [], do: :all, else: names

    status =
      Packages.run(options, "publish", [:force], fn given ->
        Package.publish(view, flags[:to], [names: names] ++ token() ++ given)
      end)

    if status == 0, do: warn_without_labels(view, names)
    status
  end

  defp token do
    case System.get_env("SKILLBOOK_TOKEN", "") do
      "" -> []
      token -> [token: fn -> token end]
    end
  end

  # Everyone who reaches the server can read the entries, without the labels.
  defp warn_without_labels(view, names) do
    for %{labels: [_ | _] = labels} = entry <- View.entries(view),
        names == :all or entry.name in names do
      Terminal.complain(
        "#{entry.name} was published without its visibility labels: #{Enum.join(labels, ", ")}"
      )
    end
  end
end
