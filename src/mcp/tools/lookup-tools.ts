import * as z from 'zod'
import type { CatalogModel } from '../../catalog/model.ts'
import { isInScope } from '../../catalog/model-scope.ts'
import { MODEL_KINDS } from '../../core/model-kind.ts'
import { ENDPOINTS } from '../../endpoints/registry.ts'
import type { ListedModel } from '../../gateway/model-list.ts'
import { type Caller, defineTool, READ_ONLY_ANNOTATIONS } from '../tool.ts'

/** Tool that lists and filters the models of `GET /v1/models`. */
export const listModels = defineTool({
  name: 'list_models',
  title: 'List models',
  description:
    `Lists the models with their kinds: ${MODEL_KINDS.join(', ')}. Limits and abilities of one ` +
    'model are in gateway://catalog/{model}.',
  annotations: READ_ONLY_ANNOTATIONS,
  input: z.object({
    kind: z.enum(MODEL_KINDS).optional().describe('Models of this kind only.'),
    available_only: z
      .boolean()
      .optional()
      .describe('Omits models whose vendor has no key, and models without a price while billing is on. Default true.'),
  }),
  output: z.object({
    models: z.array(z.looseObject({ id: z.string(), kinds: z.array(z.string()), available: z.boolean() })),
  }),
  async answer({ kind, available_only: availableOnly = true }, context) {
    const models = visibleModels(context)
      .filter((row) => (kind === undefined || row.kinds.includes(kind)) && (row.available || !availableOnly))
      .map(({ id, display_name, owned_by, kinds, available, unavailable_reason, max_input_tokens, max_tokens }) => ({
        id,
        display_name,
        owned_by,
        kinds,
        available,
        ...(unavailable_reason === undefined ? {} : { unavailable_reason }),
        ...(max_input_tokens === undefined ? {} : { max_input_tokens }),
        ...(max_tokens === undefined ? {} : { max_tokens }),
      }))
    return { structured: { models } }
  },
})

/** Ids of endpoints that accept JSON requests. */
const endpointIds = [...new Set(ENDPOINTS.filter(({ takesForms }) => takesForms !== 'only').map(({ id }) => id))]

/** Tool that returns the hold of a request. */
export const estimateCost = defineTool({
  name: 'estimate_cost',
  title: 'Estimate the cost of a request',
  description:
    'Returns the maximum cost of a request without sending it: the amount that would be held while it runs. The ' +
    'final charge is usually lower. The estimate is free.',
  annotations: READ_ONLY_ANNOTATIONS,
  input: z.object({
    endpoint: z.enum(endpointIds).describe('Endpoint of the request.'),
    request: z
      .looseObject({})
      .describe('The JSON body, as gateway://reference/{endpoint} describes it. Its model must be named.'),
  }),
  output: z.object({
    endpoint: z.string(),
    model: z.string(),
    billing: z.enum(['on', 'off']),
    currency: z.literal('USD'),
    cost: z.string().nullable().describe('Dollars, as a decimal string, or null if billing is off.'),
    usage: z.record(z.string(), z.number()).describe('Upper estimate of the usage of the request.'),
  }),
  async answer({ endpoint, request }, { gateway, principal }) {
    return { structured: { ...(await gateway.estimate(principal, { endpoint, body: request })) } }
  },
})

/** `GET /v1/account`. */
export const getBalance = defineTool({
  name: 'get_balance',
  title: 'Read the balance',
  description: 'Returns the balance of the account of this key, and the amount that is held for requests in progress.',
  annotations: READ_ONLY_ANNOTATIONS,
  input: z.object({}),
  output: z.looseObject({
    id: z.string(),
    balance: z.string().describe('Dollars, as a decimal string.'),
    held: z.string().describe('Dollars, as a decimal string.'),
    currency: z.string(),
    tier: z.string(),
  }),
  async answer(_args, { json }) {
    return { structured: await json({ method: 'GET', path: '/v1/account' }) }
  },
})

/** Caller whose models are listed. If the scope of its key names models, only those are visible, as in `GET /v1/models`. */
export type KeyOfCaller = Pick<Caller, 'gateway' | 'principal'>

/** Whether the caller's key may see a model. */
export function isVisible({ principal }: KeyOfCaller, model: CatalogModel): boolean {
  return isInScope(principal.scopes?.models, model)
}

/** Returns the ids of the models that the caller's key may see. */
export function visibleIds(caller: KeyOfCaller): ReadonlySet<string> {
  const seen = caller.gateway.catalog.list().filter((model) => isVisible(caller, model))
  return new Set(seen.map(({ id }) => id))
}

/** Returns these models in the gateway's list format. */
export function visibleModels(caller: KeyOfCaller): readonly ListedModel[] {
  const seen = visibleIds(caller)
  return caller.gateway.models().filter(({ id }) => seen.has(id))
}
