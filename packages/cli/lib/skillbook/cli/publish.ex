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
  def summary, do: "write entries for a web server, or send them to a running book"

  @impl true
  def help do
    """
    Usage: skillbook [OPTIONS] publish (NAME... | --all) --to (FOLDER | URL) [--force]

    With a folder, writes entries that the profile can see to FOLDER/.well-known/agent-skills,
    with an index in the Agent Skills Discovery format. Put FOLDER on a web server; others then
    install from it: skillbook install https://example.com. Publishing again updates the folder,
    and removes skills that are no longer published. `skillbook serve --publish PROFILE` publishes
    without a folder.

    With an https address, sends them to the `skillbook serve` there, which imports them into its
    store with low trust and the label `imported`. The environment variable SKILLBOOK_TOKEN has a
    token with the scopes discovery and page, of a profile that may write there and holds that
    label, such as the one of `skillbook --grant imported serve`.

    Options:
      --to FOLDER       folder to write to, or the address of a running book; required
      --all             all entries that the profile can see
      --force           replace an index and files that were not written by this command
      --json            print a JSON array

    Exit status: 1 if an entry could not be published.

    Examples:
      skillbook --dir skills --no-builtins publish --all --to public
      skillbook publish pdf-processing weekly.report --to public
      SKILLBOOK_TOKEN=... skillbook publish git-workflow --to https://skills.example.com
    """
  end

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
