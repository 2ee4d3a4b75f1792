import { expect } from 'vitest'
import { z } from 'zod'
import { nodeHandler } from '../../../src/adapters/node.ts'
import { type AdminHandlerOptions, adminHandler } from '../../../src/admin/admin-handler.ts'
import { ADMIN_ROUTES } from '../../../src/admin/routes/admin-routes.ts'
import type { OperatorAction } from '../../../src/core/events.ts'
import { jsonSchemaOf } from '../../../src/endpoints/schema.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import { listen } from '../../support/listen.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'

/** The stores that the admin API is tried on. */
export const ADMIN_STORES = [
  ['memory', () => memoryStore()],
  ['SQLite', () => sqliteStore({ path: ':memory:', clock: 'caller' })],
] as const

export const OPERATOR_KEY = 'operator-key-0123456789abcdef'

/** A JSON answer with its status. */
export interface Answered {
  readonly status: number
  readonly headers: Headers
  readonly body: Record<string, unknown>
}

/** A gateway with its admin API behind a socket of its own. */
export interface StartedAdmin extends StartedGateway {
  /** `http://127.0.0.1:…/admin/v1` */
  readonly admin: string
  /** Asks as the operator, and holds a JSON answer to the schema that the document promises. */
  ask(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answered>
  readonly actions: readonly OperatorAction[]
}

/** Starts one, on the memory store unless the options say otherwise. */
export async function startAdmin(
  options: Partial<GatewayOptions> = {},
  adminOptions: AdminHandlerOptions = {},
): Promise<StartedAdmin> {
  const started = await startGateway(options)
  const handler = adminHandler(started.gateway, {
    operatorKeys: [{ name: 'ops', key: OPERATOR_KEY }],
    ...adminOptions,
  })
  const mounted = await listen(nodeHandler(handler, { basePath: '/admin' }))
  const actions: OperatorAction[] = []
  const stop = started.gateway.listen((event) => {
    if (event.type === 'operator-action') actions.push(event)
  })
  const admin = `${mounted.origin}/admin/v1`
  return {
    ...started,
    admin,
    actions,
    async ask(method, path, body, headers = {}) {
      const response = await fetch(`${admin}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${OPERATOR_KEY}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...(method === 'GET' ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        body: body === undefined ? null : JSON.stringify(body),
      })
      const answered = (await response.json()) as Answered['body']
      if (response.status === 200) expectDocumented(method, path, answered)
      return { status: response.status, headers: response.headers, body: answered }
    },
    async close() {
      stop()
      await mounted.close()
      await started.close()
    },
  }
}

/** An answer must be what the OpenAPI document says of its route. */
function expectDocumented(method: string, path: string, body: unknown): void {
  const steps = path.replace(/\?.*/, '').split('/')
  const route = ADMIN_ROUTES.find(({ method: own, path: pattern }) => {
    const parts = pattern.split('/')
    const fits = parts.every((part, index) => part.startsWith('{') || part === steps[index])
    return own === method && parts.length === steps.length && fits
  })
  const schema = route?.answer && jsonSchemaOf(route.answer, 'output')
  if (schema === undefined) throw new Error(`no schema for the answer of ${method} ${path}`)
  const outcome = z.fromJSONSchema(schema as never).safeParse(body)
  expect(outcome.error?.issues, `${method} ${path}`).toBeUndefined()
}
