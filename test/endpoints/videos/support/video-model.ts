import { type CatalogModel, defineModel } from '../../../../src/catalog/model.ts'
import { DASHSCOPE_VIDEO_MODELS } from '../../../../src/catalog/models/dashscope-models.ts'
import { GatewayError } from '../../../../src/core/errors.ts'

/** A row of the catalog by its public id. */
export function videoModel(id: string): CatalogModel {
  const definition = DASHSCOPE_VIDEO_MODELS.find((row) => row.id === id)
  if (definition === undefined) throw new Error(`no such model: ${id}`)
  return defineModel(definition)
}

/** What a call refuses: code, field and text; fails when it refuses nothing. */
export function refusalOf(call: () => unknown): { code: string; param: string | undefined; message: string } {
  try {
    call()
  } catch (error) {
    if (!GatewayError.isInstance(error)) throw error
    return { code: error.code, param: error.param, message: error.message }
  }
  throw new Error('nothing was refused')
}
