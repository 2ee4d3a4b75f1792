import { z } from 'zod'
import { defineTool, LOOKS_UP } from '../tool.ts'

/** `GET /v1/account`. */
export const getBalance = defineTool({
  name: 'get_balance',
  title: 'Read the balance',
  description:
    'Says how much money the account of this key has left, and how much of it is held for requests under way.',
  annotations: LOOKS_UP,
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
