defmodule ShopWeb.Layouts do
  @moduledoc false
  use Phoenix.Component

  def root(assigns) do
    ~H"""
    <!DOCTYPE html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="csrf-token" content={Plug.CSRFProtection.get_csrf_token()} />
        <link rel="icon" href="data:," />
        <title>Chat with the shop</title>
        <style>
          body { font: 16px/1.5 system-ui, sans-serif; max-width: 40rem; margin: 2rem auto;
            padding: 0 1rem }
          ol { list-style: none; padding: 0 }
          li { margin: .5rem 0; padding: .5rem .75rem; border-radius: .5rem; width: fit-content;
            max-width: 85%; white-space: pre-wrap; background: #f0f0f0 }
          li.user { margin-left: auto; background: #dbeafe }
          li.call { background: none; color: #595959; font: 14px/1.5 ui-monospace, monospace }
          li.queued { opacity: .6 }
          section { border: 1px solid #b45309; border-radius: .5rem; padding: .75rem;
            margin: 1rem 0 }
          form { display: flex; gap: .5rem }
          input { flex: 1; font: inherit; padding: .5rem }
          button { font: inherit; padding: .5rem 1rem }
        </style>
        <script src="/js/phoenix.min.js">
        </script>
        <script src="/js/phoenix_live_view.min.js">
        </script>
        <script>
          const token = document.querySelector("meta[name=csrf-token]").content;
          new LiveView.LiveSocket("/live", Phoenix.Socket, { params: { _csrf_token: token } })
            .connect();
        </script>
      </head>
      <body>{@inner_content}</body>
    </html>
    """
  end
end
