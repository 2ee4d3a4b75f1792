import * as z from 'zod'
import { noticeStartMs, retirementOf } from '../../catalog/catalog.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import { DAY_MS } from '../../usage/usage-store.ts'
import { defineRoute, existing, type UntaggedRoute } from '../admin-route.ts'
import {
  catalogObject,
  catalogSchema,
  modelObject,
  modelSchema,
  priceObject,
  priceSchema,
  retiringModelObject,
  retiringModelSchema,
  vendorObject,
  vendorSchema,
} from '../objects/catalog.ts'
import { listObject, listOfObjects } from '../objects/fields.ts'

/** Number of earlier days whose calls the list of retiring models counts, in addition to today. */
const SPEND_DAYS = 29
/** Maximum number of called models that are examined, the most expensive first. */
const MAX_RETIRING = 1_000

/** Routes of vendors with their health. */
export const VENDOR_ROUTES: readonly UntaggedRoute[] = [
  defineRoute({
    id: 'list_vendors',
    get: '/vendors',
    summary: 'List vendors and the operator’s keys with circuits, load and latencies, as seen from this process',
    answer: listOfObjects(vendorSchema).extend({ retries_left: z.number(), catalog: catalogSchema }),
    async run({ gateway }) {
      const { vendors, retriesLeft } = gateway.routes()
      const catalog = catalogObject((await gateway.health()).catalog)
      return { ...listObject(vendors.map(vendorObject), undefined), retries_left: retriesLeft, catalog }
    },
  }),
  defineRoute({
    id: 'eject_vendor_key',
    post: '/vendor_keys/{credential}/eject',
    summary: 'Take a vendor key of this process out of use for a while; one request probes it then',
    scope: 'write',
    /** Default: one hour. */
    body: z.strictObject({ for_ms: z.number().positive().optional() }),
    answer: vendorSchema,
    async run({ gateway, params: { credential }, body }) {
      vendorOf(gateway, credential)
      gateway.vendorKeys.eject(credential, { forMs: body.for_ms })
      return vendorOf(gateway, credential)
    },
  }),
  defineRoute({
    id: 'restore_vendor_key',
    post: '/vendor_keys/{credential}/restore',
    summary: 'Close the circuit of a vendor key in this process, whatever opened it',
    scope: 'write',
    answer: vendorSchema,
    async run({ gateway, params: { credential } }) {
      vendorOf(gateway, credential)
      gateway.vendorKeys.restore(credential)
      return vendorOf(gateway, credential)
    },
  }),
]

/** Routes of models and prices. */
export const MODEL_ROUTES: readonly UntaggedRoute[] = [
  defineRoute({
    id: 'list_models',
    get: '/models',
    summary: 'List models of the catalog with their routes',
    answer: listOfObjects(modelSchema),
    async run({ gateway }) {
      const listed = new Map(gateway.models().map((model) => [model.id, model]))
      const rows = gateway.catalog.list().flatMap((row) => {
        const model = listed.get(row.id)
        return model === undefined ? [] : [modelObject({ listed: model, row })]
      })
      return listObject(rows, undefined)
    },
  }),
  defineRoute({
    id: 'list_retiring_models',
    get: '/models/retiring',
    summary:
      'List models called in the last 30 days that their vendors end within 60 days or have ended, with their spend',
    answer: listOfObjects(retiringModelSchema),
    async run({ gateway: { catalog, usage }, clock }) {
      const nowMs = clock.now()
      const { rows } = await usage.query({ from: nowMs - SPEND_DAYS * DAY_MS, groupBy: ['model'], top: MAX_RETIRING })
      const retiring = rows.flatMap((row) => {
        const model = catalog.find(row.model ?? '')
        const retires = model && retirementOf(model, catalog.source)
        if (model === undefined || retires === undefined || nowMs < noticeStartMs(retires)) return []
        return [retiringModelObject({ model, retires, row })]
      })
      return listObject(retiring, undefined)
    },
  }),
  defineRoute({
    id: 'list_prices',
    get: '/prices',
    summary: 'List prices of models; billing is "off" if there are none',
    answer: listOfObjects(priceSchema).extend({ billing: z.enum(['on', 'off']), currency: z.literal('USD') }),
    async run({ gateway }) {
      const prices = gateway.prices()
      const billing = prices === undefined ? ('off' as const) : ('on' as const)
      return { ...listObject((prices ?? []).map(priceObject), undefined), billing, currency: 'USD' as const }
    },
  }),
]

/** Returns the vendor of a key. @throws GatewayError `invalid_request` with status 404 if there is no such key. */
function vendorOf(gateway: Gateway, credential: string) {
  const report = gateway
    .routes()
    .vendors.find(({ keys }) => keys.some(({ credentialId }) => credentialId === credential))
  return vendorObject(existing('vendor key', credential, report))
}
