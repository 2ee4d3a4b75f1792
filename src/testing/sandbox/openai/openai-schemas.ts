import { asObject, asText, type Fields, isGiven } from '../request-fields.ts'
import { RefusedCall } from '../sandbox-operation.ts'
import { openaiInvalid } from './openai-errors.ts'

/**
 * Rejects parameters of a function whose objects lack `properties` or whose arrays lack `items`
 * (https://github.com/spring-projects/spring-ai/issues/4776, https://github.com/sigoden/aichat/pull/1049).
 */
export function checkParameters({ name, parameters }: Fields, param: string): void {
  const fault = isGiven(parameters) ? schemaFault(asObject(parameters), []) : undefined
  if (fault === undefined) return
  const message = `Invalid schema for function '${asText(name)}': ${fault}`
  throw new RefusedCall(openaiInvalid(message, param, 'invalid_function_parameters'))
}

function schemaFault(schema: Fields, context: readonly string[]): string | undefined {
  const { type, properties, items } = schema
  const missing = type === 'object' ? ['properties', properties] : type === 'array' ? ['items', items] : undefined
  if (missing !== undefined && !isGiven(missing[1]))
    return `In context=(${context.map((name) => `'${name}'`).join(', ')}), ${type} schema missing ${missing[0]}.`
  const inner = Object.entries(asObject(properties)).map(([name, one]): [unknown, string[]] => [
    one,
    ['properties', name],
  ])
  if (isGiven(items)) inner.push([items, ['items']])
  return inner
    .map(([one, path]) => schemaFault(asObject(one), [...context, ...path]))
    .find((fault) => fault !== undefined)
}
