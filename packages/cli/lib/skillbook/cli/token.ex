defmodule Skillbook.CLI.Token do
  @moduledoc false
  # `skillbook token`: makes, lists and removes the tokens of the web, and makes one-time links.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{Session, Terminal}
  alias Skillbook.Support.{Closest, Number}
  alias Skillbook.Web.{Access, Tokens}

  @actions ~w(add list remove link)
  @scopes [:page, :mcp, :api, :chat, :discovery]
  @units %{"s" => 1, "m" => 60, "h" => 3_600, "d" => 86_400}
  @url "http://127.0.0.1:4004"

  @impl true
  def switches do
    [
      scope: {:some_of, @scopes},
      operator: :boolean,
      label: :string,
      expires: :string,
      url: :string,
      json: :boolean
    ]
  end

  @impl true
  def args([]), do: {:ok, ["list"]}
  def args(["remove"]), do: {:error, "`token remove` needs an ID; `token list` lists them"}
  def args(["remove", id]), do: {:ok, ["remove", id]}
  def args([action]) when action in @actions, do: {:ok, [action]}

  def args([action | more]) when action in @actions,
    do: {:error, "`token #{action}` takes no more arguments, got: #{List.last(more)}"}

  def args([other | _]) do
    close = Closest.to(other, @actions, 0.7)
    hint = if close, do: "; did you mean `#{close}`?", else: ""
    {:error, "expected add, list, remove or link, got: #{other}#{hint}"}
  end

  @impl true
  def run(%{args: [action | rest], flags: flags} = options) do
    with {:ok, seconds} <- seconds(flags[:expires]),
         :ok <- url(flags[:url]) do
      mode = if action == "list", do: :read, else: :write
      Session.with_book(options, mode, &act(action, &1, rest, seconds, options), [])
    else
      {:error, message} -> Terminal.usage_error(message, "token --help")
    end
  end

  defp seconds(nil), do: {:ok, nil}

  defp seconds(text) do
    with [_all, number, unit] <- Regex.run(~r/\A([1-9]\d{0,8})([smhd])\z/, text),
         seconds = Number.integer!(number) * @units[unit],
         true <- seconds <= Tokens.max_expiry() do
      {:ok, seconds}
    else
      _other ->
        {:error, "--expires expects a time such as 10m, 12h or 30d, up to 3650d, got: #{text}"}
    end
  end

  defp url(nil), do: :ok

  defp url(url) do
    if Access.url?(url),
      do: :ok,
      else: {:error, "--url expects a URL such as https://skills.example.com, got: #{url}"}
  end

  defp act("list", book, [], _seconds, options) do
    given = if options.profile_given, do: [profile: options.profile], else: []

    with {:ok, tokens} <- Tokens.list(book, given) do
      cond do
        options.flags[:json] -> tokens |> Enum.map(&json/1) |> Terminal.put_json()
        tokens == [] -> Terminal.put("There are no tokens. `token add` makes one.")
        true -> tokens |> Enum.map_intersperse("\n", &describe(&1, options)) |> Terminal.put()
      end
    end
  end

  defp act("add", book, [], seconds, %{flags: flags} = options) do
    given =
      Keyword.take(flags, [:label, :operator]) ++
        [profile: options.profile, expires_in: seconds] ++
        case Keyword.get_values(flags, :scope) do
          [] -> []
          scopes -> [scopes: Enum.uniq(scopes)]
        end

    with {:ok, token} <- Tokens.create(book, given) do
      if flags[:json] do
        token |> json() |> Map.put(:token, token.secret.()) |> Terminal.put_json()
      else
        Terminal.note(["Made #{token.id}, ", rights(token), ". The token is shown this once:"])
        Terminal.put(token.secret.())
      end
    end
  end

  defp act("remove", book, [id], _seconds, _options) do
    with :ok <- Tokens.revoke(book, id) do
      Terminal.put(["Removed ", Terminal.line(id)])
    end
  end

  defp act("link", book, [], _seconds, options) do
    given = [profile: options.profile, operator: true, url: options.flags[:url] || @url]

    with {:ok, link} <- Tokens.link(book, given) do
      Terminal.note("This link signs in one browser, within 5 minutes:")
      Terminal.put(link.())
    end
  end

  defp describe(token, options) do
    terminal = Terminal.new(options.color)
    label = if token.label, do: [" ", Terminal.line(token.label)], else: []
    [Terminal.style(terminal, :bright, token.id), label, "\n  ", rights(token), times(token)]
  end

  defp rights(token) do
    operator = if token.operator?, do: ", an operator", else: ""
    scopes = Enum.map_join(token.scopes, ", ", &to_string/1)
    ["of the profile ", Terminal.line(token.profile), operator, ", for ", scopes]
  end

  defp times(token) do
    used =
      if token.last_used, do: "last used #{Terminal.time(token.last_used)}", else: "never used"

    ["\n  ", used, ends(token.expires_at)]
  end

  defp ends(nil), do: ""

  # It is deleted when the next one of its profile is made.
  defp ends(at) do
    word = if DateTime.compare(at, DateTime.utc_now()) == :gt, do: "until", else: "expired"
    ", #{word} #{Terminal.time(at)}"
  end

  defp json(token) do
    %{
      id: token.id,
      profile: token.profile,
      operator: token.operator?,
      scopes: token.scopes,
      label: token.label,
      created_at: iso(token.created_at),
      expires_at: iso(token.expires_at),
      last_used: iso(token.last_used)
    }
  end

  defp iso(nil), do: nil
  defp iso(time), do: DateTime.to_iso8601(time)
end
