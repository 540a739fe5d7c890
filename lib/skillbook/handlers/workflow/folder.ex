defmodule Skillbook.Handlers.Workflow.Folder do
  @moduledoc false
  # The folder into which workflows are written, as the catalog has it.

  alias Skillbook.{Context, View}

  @doc """
  All that there is, hidden entries as well, with what people put into the folder or took out of it since the last reload.
  """
  @spec everything(Context.t()) :: {:ok, View.t()} | {:error, Exception.t()}
  def everything(%{book: nil, view: view}), do: {:ok, view}

  def everything(%{book: book} = context),
    do: with(:ok <- publish(context), do: {:ok, View.all(book)})

  @doc "Has the book read what was written."
  @spec publish(Context.t()) :: :ok | {:error, Exception.t()}
  def publish(%{book: nil}), do: :ok
  def publish(%{book: book}), do: Skillbook.reload(book)
end
