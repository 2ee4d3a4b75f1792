import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { TEST_KEY } from '../../support/start-gateway.ts'

/** Revisions of the protocol that both sides know, by the way the client comes to them. */
export const ERAS = { '2025-11-25': 'legacy', '2026-07-28': { pin: '2026-07-28' } } as const

/** A revision of the protocol. */
export type Era = keyof typeof ERAS

/** How to connect. */
export interface Connecting {
  readonly era?: Era
  readonly apiKey?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Connects the official client to an MCP server. */
export async function mcpClient(url: string, connecting: Connecting = {}): Promise<Client> {
  const { era = '2025-11-25', apiKey = TEST_KEY, headers = {} } = connecting
  const client = new Client({ name: 'test', version: '1.0.0' }, { versionNegotiation: { mode: ERAS[era] } })
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { authorization: `Bearer ${apiKey}`, ...headers } },
  })
  await client.connect(transport)
  return client
}
