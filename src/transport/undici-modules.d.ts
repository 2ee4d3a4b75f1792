// The three modules of undici 7 that the transport uses. The index of undici also loads `fetch`, WebSocket, caches and mocks: 3
// MB of live heap that every full collection scans.

declare module 'undici/lib/dispatcher/client.js' {
  import { Client } from 'undici'
  export = Client
}

declare module 'undici/lib/core/connect.js' {
  import { buildConnector } from 'undici'
  export = buildConnector
}

declare module 'undici/lib/api/api-connect.js' {
  import type { Client, Dispatcher } from 'undici'

  /** `Client.prototype.connect`, which only the index of undici defines. */
  function connect(this: Client, options: Omit<Dispatcher.ConnectOptions, 'origin'>): Promise<Dispatcher.ConnectData>
  export = connect
}
