defmodule Skillbook.CLI.Servers do
  @moduledoc false
  # `skillbook servers`: lists what MCP servers offer, and approves them; and the
  # option `--mcp` of every command.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{Session, Terminal}
  alias Skillbook.MCP.Client
  alias Skillbook.MCP.Client.Settings
  alias Skillbook.Support.{External, Hidden}

  @lock ".skillbook/mcp.lock.json"

  @impl true
  def switches,
    do: [show: :string, approve: :keep, revoke: :keep, approve_all: :keep, json: :boolean]

  @impl true
  def args([]), do: {:ok, []}
  def args([word | _]), do: {:error, "`servers` takes no arguments, got: #{word}"}

  @doc "The sources of the option `--mcp`. The profile's connections are theirs."
  @spec sources([String.t()], String.t()) ::
          {:ok, [Skillbook.Source.item()]} | {:error, String.t()}
  def sources(texts, profile) do
    items = Enum.map(texts, &item(&1, profile))

    case {Enum.find(items, &match?({:error, _}, &1)), Skillbook.Source.list(items)} do
      {{:error, message}, _} -> {:error, message}
      {nil, {:ok, _sources}} -> {:ok, items}
      {nil, {:error, error}} -> {:error, "--mcp: " <> Exception.message(error)}
    end
  end

  @doc "Whether the label is that of a server at which people sign in."
  @spec sign_in?([Skillbook.Source.item()], String.t()) :: boolean()
  def sign_in?(servers, label) do
    Enum.any?(servers, fn {:mcp, _place, options} ->
      options[:label] == label and options[:oauth] != nil
    end)
  end

  defp item(text, profile) do
    with [label, place] <- String.split(text, "=", parts: 2),
         true <- Settings.label?(label) and String.trim(place) != "",
         {:ok, place} <- place(String.trim(place)) do
      {:mcp, place, [label: label, lock: @lock] ++ token(label, place, profile)}
    else
      _ ->
        {:error,
         "--mcp expects LABEL=URL or LABEL=COMMAND, with lowercase letters, digits and - in " <>
           "LABEL, got: #{hd(String.split(text, "?"))}"}
    end
  end

  defp place(text) do
    if text =~ ~r/\A[A-Za-z][A-Za-z0-9+.-]*:\/\//,
      do: {:ok, text},
      else: {:ok, OptionParser.split(text)}
  rescue
    # A quote that is not closed.
    _error -> :error
  end

  defp token(_label, place, _profile) when is_list(place), do: []

  defp token(label, _url, profile) do
    name = variable(label)
    if System.get_env(name), do: [token: {:env, name}], else: [oauth: [profile: profile]]
  end

  @doc "The variable with the token for the server of a label."
  @spec variable(String.t()) :: String.t()
  def variable(label),
    do: "SKILLBOOK_MCP_TOKEN_" <> (label |> String.upcase() |> String.replace("-", "_"))

  @impl true
  def run(%{servers: []}),
    do: Terminal.usage_error("`servers` needs --mcp LABEL=URL", "servers --help")

  # The list shows which offers are not approved.
  def run(options), do: Session.with_book(options, :read, &act(&1, options), [:problems])

  defp act(book, %{flags: [{:show, name} | _]}) do
    # Before the text is read: the server may change the offer meanwhile.
    offer = Enum.find(Client.offers(book), &(&1.name == name))

    with {:ok, text} <- Client.read(book, name) do
      if String.valid?(text),
        do: Terminal.put(Hidden.visible(text)),
        else: Terminal.note("no text")

      approve_it(offer)
    end
  end

  defp act(book, %{flags: flags} = options) do
    by = [by: Session.user()]

    decisions =
      for(
        text <- Keyword.get_values(flags, :approve),
        do: Client.approve(book, label(text), [wanted(text)], by)
      ) ++
        for name <- Keyword.get_values(flags, :revoke),
            do: Client.revoke(book, label(name), [name], by)

    all =
      for label <- Keyword.get_values(flags, :approve_all),
          do: Client.approve(book, label, :all, by)

    errors = for {:error, error} <- decisions ++ all, do: error
    Enum.each(errors, &Terminal.complain(Exception.message(&1)))
    offers = Client.offers(book)

    if flags[:json],
      do: Terminal.put_json(offers),
      else: put(offers, Terminal.new(options.color))

    unavailable? = Enum.any?(Skillbook.diagnostics(book), &(&1.code == :server_unavailable))
    if errors != [] or unavailable?, do: 1, else: 0
  end

  # Another run of this program lists anew, and the server may have changed it by then.
  defp approve_it(%{status: status} = offer) when status != :approved,
    do: Terminal.note("to approve exactly this: servers --approve #{offer.name}@#{offer.digest}")

  defp approve_it(_offer), do: :ok

  defp wanted(text) do
    case Regex.run(~r/\A(.+)@(sha256:[0-9a-f]{64})\z/s, text, capture: :all_but_first) do
      [name, digest] -> {name, digest}
      nil -> text
    end
  end

  # The names of entries begin with the label.
  defp label(name), do: name |> String.split([".", "/"], parts: 2) |> hd()

  defp put([], _terminal), do: Terminal.note("no tools and skills")

  defp put(offers, terminal) do
    width = offers |> Enum.map(&String.length(&1.name)) |> Enum.max()

    offers
    |> Enum.map_intersperse("\n", fn offer ->
      name = String.pad_trailing(offer.name, width)
      facts = String.pad_trailing("#{offer.kind}  #{offer.status}", 15)
      about = External.line(offer.description, 80)
      [Terminal.style(terminal, :bright, name), "  ", facts, "  ", about]
    end)
    |> Terminal.put()
  end
end
