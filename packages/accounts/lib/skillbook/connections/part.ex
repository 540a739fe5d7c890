defmodule Skillbook.Connections.Part do
  @moduledoc false
  # The accounts of a book's profiles at vendors, their commands, and vaults of their files.

  use Skillbook.Part

  alias Skillbook.Connections.{Client, Config, Tokens, Vendor}
  alias Skillbook.Support.Operation
  alias Skillbook.{Book, Connections, Drive, OptionError, Part, Source}

  @impl true
  # Its values may be secret, so it is checked where errors do not show them.
  def options, do: [connections: {"a keyword list of accounts", fn _options -> true end}]

  @impl true
  def read(book, options) do
    case options[:connections] do
      nil ->
        {:ok, Book.put(book, connections: nil)}

      accounts ->
        with {:ok, config} <- Config.read(accounts, book.name),
             do: {:ok, Book.put(book, connections: config)}
    end
  end

  @impl true
  def builtins(book) do
    config = book.of_parts[:connections]
    domains = Enum.map(Vendor.services(), &Vendor.domain/1)
    offered = if config, do: Enum.map(Config.services(config), &Vendor.domain/1), else: []

    [
      %{
        source: Source.builtin(:connections),
        of: offered,
        domains: domains,
        names: Vendor.packs()
      }
    ]
  end

  @impl true
  def shared, do: [Client.Quota]

  @impl true
  def init(book), do: if(any?(book), do: Tokens.new(book.name))

  @impl true
  def load(book) do
    if any?(book), do: with(:ok <- Config.check(book), do: Tokens.load(book)), else: :ok
  end

  @doc "Whether a book has accounts, or servers at which people sign in."
  @spec any?(Part.book() | map()) :: boolean()
  def any?(book),
    do: book.of_parts.connections != nil or Part.flat(book.parts, :sign_ins, [book]) != []

  @impl true
  # Before the process that follows the database, which tells it about changes.
  def before_catalog(book), do: if(any?(book), do: [{Tokens, book}], else: [])

  @impl true
  def settings, do: ["connections"]

  @impl true
  def changed(book, "connections"),
    do: if(any?(book), do: Tokens.follow(book.name))

  @impl true
  defdelegate token(book, name, profile, refusal, deadline), to: Connections, as: :server_token

  @impl true
  def services, do: Enum.map(Vendor.services(), &Atom.to_string/1)

  @impl true
  def services(%{of_parts: %{connections: nil}}, _profile), do: []
  def services(book, profile), do: Connections.services_of(book.name, profile)

  @impl true
  def operations do
    text? = ~w(profile tenant identity)a
    output = [text: ~w(account status)a, text?: text?, boolean: [:sign_in]]
    output = output ++ [texts: ~w(services scopes)a, time?: ~w(connected_at renewed_at)a]
    last = "the `account` and the `profile` of the last connection of the page before"

    [
      %Operation{
        name: :connections,
        doc: "Lists the connections.",
        caller: :trusted,
        input: [
          limit: {{:number, 1, 1_000}, "the most of them, all by default"},
          after: {{:text, 300}, last}
        ],
        output: [output],
        run: &Connections.list/2
      }
    ]
  end

  @impl true
  defdelegate check_call(context), to: Connections, as: :check

  @impl true
  def producer(options, book, poll) do
    cond do
      options[:drive] == nil ->
        :other

      # Without them, all profiles would search the drive of one person.
      options[:labels] == nil ->
        {:error, %OptionError{subject: "a vault with :drive", option: :labels, problem: :missing}}

      true ->
        with {:ok, options} <- Drive.Folder.options(options[:drive], book, poll),
             do: {:ok, {Drive.Folder, options}}
    end
  end
end
