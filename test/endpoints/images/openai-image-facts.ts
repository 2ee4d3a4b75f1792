import { expect } from 'vitest'
import { type CatalogModel, defineModel, type ImageAbilities } from '../../../src/catalog/model.ts'
import { OPENAI_IMAGE_MODELS } from '../../../src/catalog/models/openai-models.ts'
import { GatewayError } from '../../../src/core/errors.ts'

/** A row of the catalog by its public id. */
export function builtIn(id: string): CatalogModel {
  const row = OPENAI_IMAGE_MODELS.find((definition) => definition.id === id)
  if (row === undefined) throw new Error(`no such row: ${id}`)
  return defineModel(row)
}

/** A row that a host wrote, with the abilities it chose to tell. */
export function hostRow(image?: ImageAbilities): CatalogModel {
  return defineModel({
    id: 'my-pictures',
    kind: ['image', 'image_edit'],
    vendor: 'mine',
    protocol: 'generations',
    image,
  })
}

/** The error that a call must throw, as callers read it. */
export function refusal(call: () => unknown): Record<string, unknown> {
  try {
    call()
  } catch (error) {
    expect(error).toBeInstanceOf(GatewayError)
    const { status, type, publicCode, param, message } = error as GatewayError
    return { status, type, code: publicCode, param, message }
  }
  throw new Error('nothing was refused')
}
