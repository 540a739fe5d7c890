defmodule Skillbook.Handlers.Email.Forward do
  @moduledoc false
  # `email.forward`: sends a mail on to others, with its attachments.

  @behaviour Skillbook.Handler

  alias Skillbook.Handlers.Email.{Compose, Send}

  @impl true
  def check(flags, context), do: Compose.check_recipients(flags, context)

  @impl true
  def execute(flags, context), do: Send.deliver(context, &Compose.forward(&1, flags, context))
end
