defmodule Skillbook.Test.Packages do
  @moduledoc false
  # For tests that install skills: pages, git repositories, and the outcomes of
  # `Skillbook.Package`.

  import Skillbook.SkillsCase, only: [write: 2]

  alias Skillbook.Support.JSON

  @doc "The options that accept every skill."
  def accept_all, do: [accept: fn _question -> true end]

  @doc "The text of a valid `SKILL.md`."
  def skill(name, body \\ "# Page\n"),
    do: "---\nname: #{name}\ndescription: Does #{name} well\n---\n#{body}"

  @doc "Runs git in a folder; returns its output."
  def git!(folder, args) do
    settings = ~w(-c user.name=a -c user.email=a@example.com -c commit.gpgsign=false)

    {output, 0} = System.cmd("git", settings ++ args, cd: folder, stderr_to_stdout: true)
    String.trim(output)
  end

  @doc "A repository with two skills, its commit, and a folder to install to."
  def repository(folder) do
    root = Path.join(folder, "origin.git")

    write(root, %{
      "skills/one/SKILL.md" => skill("one"),
      "skills/one/run.sh" => "echo 1\n",
      ".claude/skills/two/SKILL.md" => skill("two")
    })

    # A copy of a skill, for another program.
    write(root, %{".agents/long/skills/two/SKILL.md" => skill("two")})
    git!(root, ["init", "-q", "-b", "main"])
    {root, commit(root), Path.join(folder, "to")}
  end

  @doc "Commits all changes; returns the commit's id."
  def commit(root) do
    git!(root, ["add", "-A"])
    git!(root, ["commit", "-q", "-m", "x"])
    git!(root, ["rev-parse", "HEAD"])
  end

  @doc "The names and actions of outcomes, or the message of an error."
  def actions({:ok, outcomes}), do: for(outcome <- outcomes, do: {outcome.name, outcome.action})
  def actions({:error, error}), do: Exception.message(error)

  @doc "The messages of outcomes with an error."
  def messages({:ok, outcomes}),
    do: for(%{error: error} <- outcomes, error, do: Exception.message(error))

  @doc """
  Options with an HTTP client whose network has these addresses only: a map from an address to a
  body, to `{status, headers, body}`, or to a function that returns one; or a function of the
  address.
  """
  def network(addresses, options \\ []),
    do: [http: [adapter: {__MODULE__.Network, [addresses: addresses, test: self()]}]] ++ options

  @doc "The body of an index of version 0.2.0."
  def index(rows) do
    JSON.encode(%{
      "$schema" => "https://schemas.agentskills.io/discovery/0.2.0/schema.json",
      "skills" => rows
    })
  end

  @doc "A row of an index for an artifact with these bytes."
  def row(name, bytes, fields \\ %{}) do
    hash = :sha256 |> :crypto.hash(bytes) |> Base.encode16(case: :lower)

    Map.merge(
      %{
        "name" => name,
        "type" => "skill-md",
        "description" => "Does #{name} well",
        "url" => "#{name}/SKILL.md",
        "digest" => "sha256:" <> hash
      },
      fields
    )
  end

  defmodule Network do
    @moduledoc false
    # See `Skillbook.Test.Packages.network/2`. The test gets `{:fetched, address}` for each
    # request.

    @behaviour Skillbook.HTTP.Adapter

    @impl true
    def stream(request, _settings, options, state, fun) do
      address = URI.to_string(request.url)
      send(options[:test], {:fetched, address})

      {status, headers, body} =
        case lookup(options[:addresses], address) do
          nil -> {404, [], "not found"}
          body when is_binary(body) -> {200, [], body}
          answer when is_function(answer, 0) -> answer.()
          answer -> answer
        end

      with {:cont, state} <- fun.({:head, status, headers}, state),
           {:cont, state} <- fun.({:data, body}, state),
           do: {:ok, state},
           else: ({:halt, state} -> {:halted, state})
    end

    defp lookup(addresses, address) when is_function(addresses, 1), do: addresses.(address)
    defp lookup(addresses, address), do: addresses[address]
  end
end
