defmodule Skillbook.Vault.Part do
  @moduledoc false
  # The vaults of a book: their indexers, and the commands that read and write notes.

  use Skillbook.Part

  alias Skillbook.Vault.{Config, Indexer, Table}
  alias Skillbook.{Book, OptionError, Source, Vault}

  @impl true
  def options, do: [vaults: {"a list of vaults", &is_list/1}]

  @impl true
  def read(book, options) do
    case {options[:vaults] || [], options[:store]} do
      {[], _store} ->
        {:ok, Book.put(book, vaults: [])}

      # The index of a vault is in the database.
      {_vaults, nil} ->
        {:error, %OptionError{subject: "a book with :vaults", option: :store, problem: :missing}}

      {vaults, _store} ->
        with {:ok, vaults} <- Config.list(vaults, book.name),
             do: {:ok, Book.put(book, vaults: vaults)}
    end
  end

  @impl true
  def builtins(%{of_parts: %{vaults: [_ | _]}}) do
    domains = ["markdown"]
    [%{source: Source.builtin(:vaults), of: domains, domains: domains, names: %{}}]
  end

  def builtins(_book), do: []

  @impl true
  # One indexer per vault, so a vault that cannot be indexed does not stop the others.
  def children(%{of_parts: %{vaults: vaults}} = book) do
    indexers =
      for %{producer: {_, _}} = vault <- vaults do
        vault = %{vault | watch: vault.watch and book.watch != false}
        {Indexer, {book.name, vault}}
      end

    if indexers == [],
      do: [],
      else: [{Registry, keys: :unique, name: Indexer.registry(book.name)} | indexers]
  end

  @impl true
  def sync(book),
    do: for(vault <- Book.fetch!(book).of_parts.vaults, do: Vault.sync(book, vault.name))

  @impl true
  # Other books of the database may have other vaults.
  def documents(book), do: %{"vault" => {Table, Enum.map(book.of_parts.vaults, & &1.name)}}
end
