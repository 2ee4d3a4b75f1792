import { z } from 'zod'
import { ENDPOINTS } from '../../gateway/routes.ts'
import { defineTool, LOOKS_UP } from '../tool.ts'

const endpointIds = [...new Set(ENDPOINTS.map((endpoint) => endpoint.id))]

/** What a request would be held for. */
export const estimateCost = defineTool({
  name: 'estimate_cost',
  title: 'Estimate the cost of a request',
  description:
    'Says what a request would cost at most, without sending it: the amount that would be held while it runs. What is ' +
    'charged in the end is mostly less. Nothing is charged for asking.',
  annotations: LOOKS_UP,
  input: z.object({
    endpoint: z.enum(endpointIds).describe('The endpoint that the request is meant for.'),
    request: z
      .looseObject({})
      .describe('The JSON body, as gateway://reference/{endpoint} describes it. Its model must be named.'),
  }),
  output: z.object({
    endpoint: z.string(),
    model: z.string(),
    billing: z.enum(['on', 'off']),
    currency: z.literal('USD'),
    cost: z.string().nullable().describe('Dollars, as a decimal string; null when billing is off.'),
    usage: z.record(z.string(), z.number()).describe('The upper estimate of what the request uses.'),
  }),
  async answer({ endpoint, request }, { gateway, principal }) {
    return { structured: { ...(await gateway.estimate(principal, { endpoint, body: request })) } }
  },
})
