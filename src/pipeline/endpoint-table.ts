import type { GatewayRequest } from '../core/exchange.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import type { ErrorDialect } from '../endpoints/error-dialect.ts'
import type { FileDialect } from '../endpoints/file-dialect.ts'

/** All endpoints of one gateway, by path and by id. */
export class EndpointTable {
  /** Endpoints in the given order. */
  readonly all: readonly Endpoint[]
  readonly #byPath: ReadonlyMap<string, Endpoint>
  readonly #withTasks: ReadonlyMap<string, Endpoint>
  /** Endpoints that store their answers. */
  readonly keepingAnswers: readonly Endpoint[]
  /** Endpoints whose own API has batches. */
  readonly withInlineBatches: readonly Endpoint[]

  /** @throws TypeError for two endpoints of one path, and without any endpoint. */
  constructor(endpoints: readonly Endpoint[]) {
    if (endpoints.length === 0) throw new TypeError('a gateway needs an endpoint')
    this.all = endpoints
    this.#byPath = new Map(endpoints.map((endpoint) => [endpoint.path, endpoint]))
    this.#withTasks = new Map(
      endpoints.filter(({ task }) => task !== undefined).map((endpoint) => [endpoint.id, endpoint]),
    )
    this.keepingAnswers = endpoints.filter(({ kept }) => kept !== undefined)
    this.withInlineBatches = endpoints.filter(({ inlineBatches }) => inlineBatches !== undefined)
    if (this.#byPath.size < endpoints.length) throw new TypeError('two endpoints have the same path')
  }

  /** Returns the endpoint of a path. */
  at(path: string): Endpoint | undefined {
    return this.#byPath.get(path)
  }

  /** Endpoints whose answers are tasks. */
  get withTasks(): Iterable<Endpoint> {
    return this.#withTasks.values()
  }

  /** Returns the endpoint of a task by the endpoint id of the task. */
  taskEndpoint(id: string): Endpoint | undefined {
    return this.#withTasks.get(id)
  }

  /** Returns the endpoint with deferred answers, given its id. */
  deferring(id: string): Endpoint | undefined {
    return this.all.find((endpoint) => endpoint.id === id && endpoint.deferral !== undefined)
  }

  /** Returns the error dialect for a path without an endpoint: that of the endpoint above it, or of the caller's client. */
  errorsAt(path: string, caller?: Pick<GatewayRequest, 'header'>): ErrorDialect {
    let nearest = this.#byPath.get(path)
    for (const endpoint of this.all) {
      if (path.startsWith(`${endpoint.path}/`) && endpoint.path.length > (nearest?.path.length ?? 0)) nearest = endpoint
    }
    nearest ??= this.all.find(({ errors }) => isFromClientOf(errors, caller))
    return (nearest ?? this.all[0]!).errors
  }

  /** Returns how the client of a request reads files, or `undefined` if its API has no files of its own. */
  filesFor(caller: Pick<GatewayRequest, 'header'>): FileDialect | undefined {
    return this.all.find(({ errors, files }) => files !== undefined && isFromClientOf(errors, caller))?.files
  }
}

function isFromClientOf({ clientHeader }: ErrorDialect, caller: Pick<GatewayRequest, 'header'> | undefined): boolean {
  return clientHeader !== undefined && caller?.header(clientHeader) !== undefined
}
