import type { AuthInfo, JSONRPCMessage, McpServer, Server, Transport } from '@modelcontextprotocol/server'
import type { Caller } from './tool-context.ts'

/**
 * One exchange, as the SDK carries it: in place of the credential record that it passes to the factory of servers. Holds no
 * credential.
 */
export class ServedExchange implements AuthInfo {
  readonly token = ''
  readonly clientId: string
  readonly scopes: string[] = []
  readonly caller: Caller
  #result: JSONRPCMessage | undefined

  constructor(caller: Caller) {
    this.caller = caller
    this.clientId = caller.principal.keyId
  }

  /** The result that {@link takeResult} took from the server; the SDK's own response is then empty. */
  get result(): JSONRPCMessage | undefined {
    return this.#result
  }

  /**
   * Intercepts the result of a server before it is connected to the transport of one exchange, and closes that transport. The
   * SDK would build a web `Response` only to be read again, a fifth of the time of a tool call. Errors, which have their own
   * statuses, and results after notifications, which belong to a stream, are left to the SDK.
   */
  takeResult(server: Server | McpServer): void {
    const connect = server.connect.bind(server)
    server.connect = (transport: Transport) => {
      const send = transport.send.bind(transport)
      let isFirst = true
      transport.send = (message, options) => {
        if (!isFirst || !('result' in message)) {
          isFirst = false
          return send(message, options)
        }
        this.#result = message
        return transport.close()
      }
      return connect(transport)
    }
  }
}
