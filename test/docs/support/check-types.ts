import { join } from 'node:path'
import ts from 'typescript'
import { type CodeBlock, ROOT } from './markdown.ts'

/** Declarations that pages may use without showing their origin. */
const AMBIENT = `
declare const gateway: import('signalbox').Gateway
declare const apiKey: string
declare const vendors: import('signalbox').Vendor[]
declare const prices: import('signalbox').PriceFile
`

/**
 * Compiles blocks against the source, all in one program so that it is loaded once. Each block is a module of its own.
 * @returns one line for each fault: `README.md:40: …`.
 */
export function typeFaults(blocks: readonly CodeBlock[]): string[] {
  const config = ts.readConfigFile(join(ROOT, 'tsconfig.json'), ts.sys.readFile)
  const { options } = ts.parseJsonConfigFileContent(config.config, ts.sys, ROOT)
  options.moduleDetection = ts.ModuleDetectionKind.Force
  options.noUnusedLocals = false
  options.noUnusedParameters = false
  const ambientFile = join(ROOT, 'docs-ambient.d.cts')
  const files = new Map<string, string>([[ambientFile, AMBIENT]])
  const blockByFile = new Map<string, CodeBlock>()
  blocks.forEach((block, index) => {
    const file = join(ROOT, `docs-block-${index}.ts`)
    files.set(file, block.code)
    blockByFile.set(file, block)
  })
  const program = ts.createProgram([...files.keys()], options, hostWith(files, options))
  return [...blockByFile].flatMap(([file, block]) => {
    const source = program.getSourceFile(file)
    const found = [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)]
    return found.map(({ start = 0, messageText }) => {
      const line = block.line + (source?.getLineAndCharacterOfPosition(start).line ?? 0)
      return `${block.page}:${line}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`
    })
  })
}

function hostWith(files: ReadonlyMap<string, string>, options: ts.CompilerOptions): ts.CompilerHost {
  const host = ts.createCompilerHost(options)
  const { fileExists, readFile, getSourceFile } = host
  host.fileExists = (path) => files.has(path) || fileExists(path)
  host.readFile = (path) => files.get(path) ?? readFile(path)
  host.getSourceFile = (path, ...rest) => {
    const text = files.get(path)
    return text === undefined ? getSourceFile(path, ...rest) : ts.createSourceFile(path, text, rest[0], true)
  }
  return host
}
