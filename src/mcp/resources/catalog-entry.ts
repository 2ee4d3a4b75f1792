import type { Gateway } from '../../gateway/gateway.ts'

/** Every model, as `GET /v1/models` lists it. */
export function catalogOf(gateway: Gateway) {
  return { models: gateway.models() }
}

/** What the catalog knows of a model, by id or alias; undefined when there is none. What stands at the vendor is left out. */
export function modelEntry(gateway: Gateway, idOrAlias: string) {
  const model = gateway.catalog.find(idOrAlias)
  if (model === undefined) return undefined
  const { id, displayName, kinds, aliases, limits, image, video, protocol } = model
  return {
    id,
    display_name: displayName,
    kinds,
    available: gateway.models().some((row) => row.id === id && row.available),
    aliases,
    ...(protocol === undefined ? {} : { protocol }),
    limits,
    ...(image === undefined ? {} : { image }),
    ...(video === undefined ? {} : { video }),
  }
}
