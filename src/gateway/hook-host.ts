import { Buffer } from 'node:buffer'
import type { Catalog } from '../catalog/catalog.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import type { AskingCall, GatewayHook, HookHost } from '../hooks/gateway-hook.ts'
import type { AnyHook } from '../hooks/hook.ts'
import { CallRecord } from '../pipeline/call-record.ts'
import { InnerCaller, innerRequest } from '../pipeline/inner-request.ts'
import { runToEnd } from '../pipeline/pipeline.ts'
import type { PipelineContext } from '../pipeline/pipeline-context.ts'

/** A hook as hosts give it. */
export type GivenHook = AnyHook | GatewayHook

/** What a host of hooks is made from. */
export interface HostedGateway {
  readonly endpoints: readonly Endpoint[]
  readonly catalog: Catalog
  /** The context, once it is made. */
  context(): PipelineContext
}

/**
 * The hooks of one gateway, those that ask it made for it.
 * @throws TypeError of such a hook, and for one that is neither.
 */
export function hooksFor(given: readonly GivenHook[], gateway: HostedGateway): readonly AnyHook[] {
  const host = hostOf(gateway)
  return given.map((hook) => (isGatewayHook(hook) ? hook.forGateway(host) : hook))
}

function isGatewayHook(hook: GivenHook | null): hook is GatewayHook {
  return typeof hook === 'object' && hook !== null && 'forGateway' in hook && typeof hook.forGateway === 'function'
}

function hostOf({ endpoints, catalog, context }: HostedGateway): HookHost {
  let asking: PipelineContext | undefined
  return {
    endpoints: endpoints.map((endpoint) => {
      const shapes = endpoint.shapes === undefined ? [endpoint] : [...endpoint.shapes.values()]
      return {
        id: endpoint.id,
        path: endpoint.path,
        kind: endpoint.kind,
        hasRequestTexts: shapes.every(({ texts }) => texts !== undefined),
        hasAnswerTexts: shapes.some(({ texts }) => texts?.answer !== undefined),
      }
    }),
    kindsOf: (model) => catalog.find(model)?.kinds,
    ask: (path, body, call) => {
      asking ??= askingContext(context())
      return ask(asking, path, body, call)
    },
  }
}

/** The same gateway for calls of its operator: nothing limits, charges or screens them. */
function askingContext(context: PipelineContext): PipelineContext {
  const own = {
    hooks: undefined,
    prices: undefined,
    limits: UNLIMITED,
    plans: NO_PLANS,
  } satisfies Partial<PipelineContext>
  // What the context reads anew each time, such as its listeners, stays so.
  return Object.create(context, Object.getOwnPropertyDescriptors(own)) as PipelineContext
}

const UNLIMITED: PipelineContext['limits'] = { perKey: {}, perAccount: {}, perEndUser: {} }
const NO_PLANS: PipelineContext['plans'] = new Map()

async function ask(context: PipelineContext, path: string, body: object, call: AskingCall): Promise<unknown> {
  const endpoint = context.endpoints.at(path)
  if (endpoint === undefined) throw new TypeError(`the gateway has no endpoint ${path}`)
  const { signal, principal } = call
  signal.throwIfAborted()
  const caller = new InnerCaller()
  const received = new CallRecord({
    request: innerRequest(path, Buffer.from(JSON.stringify(body))),
    sink: caller,
    requestId: context.ids.next('req'),
    startedAtMs: context.clock.now(),
    called: endpoint,
    vouchedPrincipal: { ...principal, scopes: undefined, limits: undefined, plan: null },
    routeOverride: undefined,
  })
  // Its time is the hook's.
  const abort = (): void => received.calls.abort('overdue')
  signal.addEventListener('abort', abort, { once: true })
  try {
    await runToEnd(context, received, () => undefined)
  } finally {
    signal.removeEventListener('abort', abort)
    received.calls.end()
  }
  return JSON.parse(caller.text) as unknown
}
