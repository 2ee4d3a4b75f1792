import type { Catalog } from '../catalog/catalog.ts'
import type { Endpoint } from '../endpoints/endpoint.ts'
import type { AskingCall, GatewayHook, HookHost } from '../hooks/call-hook.ts'
import type { AnyHook } from '../hooks/hook.ts'
import { InnerCaller, innerCall } from '../pipeline/idempotent-request.ts'
import type { PipelineContext } from '../pipeline/pipeline-context.ts'
import { runToEnd } from '../pipeline/serve.ts'

/** Hook in the form that hosts pass. */
export type GivenHook = AnyHook | GatewayHook

/** Parts of a gateway that its hooks need. */
export interface HostedGateway {
  readonly endpoints: readonly Endpoint[]
  readonly catalog: Catalog
  /** Returns the context after its creation. */
  context(): PipelineContext
}

/**
 * Returns the hooks of one gateway. Hooks that make calls are created for it.
 * @throws TypeError for an invalid hook.
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

/** Returns the same gateway for calls of its operator, without limits, charges or hooks. */
function askingContext(context: PipelineContext): PipelineContext {
  const own = {
    hooks: undefined,
    prices: undefined,
    limits: UNLIMITED,
    plans: NO_PLANS,
  } satisfies Partial<PipelineContext>
  // Getters of the context, such as its listeners, stay getters.
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
  const received = innerCall(context, {
    endpoint,
    principal: { ...principal, scopes: undefined, limits: undefined, plan: null },
    requestId: context.ids.next('req'),
    body: JSON.stringify(body),
    sink: caller,
  })
  // The timeout belongs to the hook.
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
