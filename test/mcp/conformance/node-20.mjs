// The conformance suite imports `globSync`, which Node has from version 22 on, for a command that is not used here. With
// this file preloaded (`node --import`) the suite runs on Node 20 too.
import { register } from 'node:module'

const hooks = `
const FILE_SYSTEM = "data:text/javascript," + encodeURIComponent(
  'export * from "node:fs"; export { default } from "node:fs";' +
  'export function globSync() { throw new Error("globSync is not there") }')

export async function resolve(specifier, context, next) {
  const isSuite = context.parentURL?.includes("/@modelcontextprotocol/conformance/") === true
  return isSuite && specifier === "fs" ? { url: FILE_SYSTEM, shortCircuit: true } : next(specifier, context)
}
`

register(`data:text/javascript,${encodeURIComponent(hooks)}`)
