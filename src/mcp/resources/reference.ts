import type { Endpoint } from '../../endpoints/endpoint.ts'
import { ENDPOINTS } from '../../endpoints/registry.ts'

/** The reference of each endpoint, by its id, built on request. Several paths may share an id. */
export const REFERENCES: ReadonlyMap<string, () => unknown> = new Map(
  ENDPOINTS.map(({ id }) => [
    id,
    () => ({ endpoint: id, requests: ENDPOINTS.filter((endpoint) => endpoint.id === id).flatMap(requestsOf) }),
  ]),
)

/** Shapes of request body, and when each is the right one. Rules that depend on the model are in `gateway://catalog/{model}`. */
function requestsOf(endpoint: Endpoint) {
  const shapes: readonly (readonly [string, Endpoint])[] =
    endpoint.shapes === undefined
      ? [['every model of the endpoint', endpoint]]
      : Array.from(endpoint.shapes, ([protocol, shape]) => [`models of the protocol ${protocol}`, shape])
  return shapes.flatMap(([described, shape]) => {
    const schema = shape.requestSchema?.()
    return schema === undefined ? [] : [{ method: 'POST', path: endpoint.path, for: described, schema }]
  })
}
