import type { AuthInfo, JSONRPCMessage, McpServer, Server, Transport } from '@modelcontextprotocol/server'
import type { Caller } from './tool-context.ts'

/**
 * One exchange, as the SDK carries it through: in the place of a credential record, which it hands to whoever makes the
 * server. There is no credential in it.
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

  /** What the server answered, when {@link takeResult} has taken it: the SDK's own response is void then. */
  get result(): JSONRPCMessage | undefined {
    return this.#result
  }

  /**
   * Takes the result from a server that is about to be connected to the transport of one exchange, and closes that
   * transport. The SDK would make a web `Response` of it, to be read again at once: a fifth of the time of a tool call.
   * Errors, which have statuses of their own, and results after notifications, which stand in a stream, are left to it.
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
