import type { ByteSink, GatewayRequest } from '../core/exchange.ts'

/** A request that the gateway makes of itself: JSON, without other headers. */
export function innerRequest(path: string, body: Uint8Array): GatewayRequest {
  return {
    method: 'POST',
    path,
    query: '',
    header: (name) => (name === 'content-type' ? 'application/json' : undefined),
    readBody: (_limitBytes, listener) => listener(undefined, [body]),
  }
}

/** Takes an answer that is sent to nobody. */
export const NOWHERE: ByteSink = {
  closed: false,
  head: () => undefined,
  write: () => true,
  end: () => undefined,
  destroy: () => undefined,
  onDrain: () => undefined,
  onClose: () => undefined,
}
