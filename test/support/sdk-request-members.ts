import { join } from 'node:path'
import ts from 'typescript'

const PACKAGES = join(import.meta.dirname, '../../node_modules')

/** A member of a request in the types of an official SDK. Each member of each object type is listed once, at its first place. */
export interface SdkMember {
  /** Place in the request: `input[].content[].file_id`. `[]` is an element of a list, `{}` a value of a record. */
  readonly path: string
  /** Name of the member: `file_id`. */
  readonly name: string
  /** Name of the type that declares the member: `ResponseInputImage`, or `Tool.Mcp` for a nested one. */
  readonly owner: string
  /** Literals of the member `type` of the declaring type: `['input_image']`. Empty without such a member. */
  readonly ownerTypes: readonly string[]
  /** Whether its value can be any string. */
  readonly isText: boolean
  /** Whether its value can be a list of any strings. */
  readonly isTextList: boolean
  /** Comment of the SDK on the member, without markup. */
  readonly comment: string
}

/** Request types of the endpoints that the gateway serves, by their declaration file in `node_modules`. */
export const SDK_REQUESTS = {
  'openai/resources/chat/completions/completions.d.ts': ['ChatCompletionCreateParams'],
  'openai/resources/responses/responses.d.ts': ['ResponseCreateParams'],
  'openai/resources/responses/input-tokens.d.ts': ['InputTokenCountParams'],
  'openai/resources/conversations/conversations.d.ts': ['ConversationCreateParams'],
  'openai/resources/conversations/items.d.ts': ['ItemCreateParams'],
  'openai/resources/images.d.ts': ['ImageGenerateParams', 'ImageEditParams'],
  'openai/resources/audio/speech.d.ts': ['SpeechCreateParams'],
  'openai/resources/audio/transcriptions.d.ts': ['TranscriptionCreateParams'],
  'openai/resources/embeddings.d.ts': ['EmbeddingCreateParams'],
  'openai/resources/completions.d.ts': ['CompletionCreateParams'],
  'openai/resources/moderations.d.ts': ['ModerationCreateParams'],
  'openai/resources/videos.d.ts': ['VideoCreateParams'],
  '@anthropic-ai/sdk/resources/messages/messages.d.ts': ['MessageCreateParams', 'MessageCountTokensParams'],
  '@anthropic-ai/sdk/resources/beta/messages/messages.d.ts': ['MessageCreateParams', 'MessageCountTokensParams'],
} as const

/** Declaration file of request types. */
export type SdkRequestFile = keyof typeof SDK_REQUESTS

let program: ts.Program | undefined

/**
 * Returns the members of the request types that a declaration file exports, nested ones included. Types from outside of the
 * SDK's `resources`, such as files and streams, are not entered.
 * @throws Error if the file does not export one of the types.
 */
export function sdkRequestMembers(file: SdkRequestFile): readonly SdkMember[] {
  program ??= ts.createProgram(
    Object.keys(SDK_REQUESTS).map((name) => join(PACKAGES, name)),
    {
      strict: true,
      module: ts.ModuleKind.NodeNext,
      moduleResolution: ts.ModuleResolutionKind.NodeNext,
      target: ts.ScriptTarget.ES2022,
      types: [],
      noEmit: true,
    },
  )
  const checker = program.getTypeChecker()
  const source = program.getSourceFile(join(PACKAGES, file))
  const module = source && checker.getSymbolAtLocation(source)
  const exported = module === undefined ? [] : checker.getExportsOfModule(module)
  const walk = new MemberWalk(checker)
  for (const name of SDK_REQUESTS[file]) {
    const symbol = exported.find((one) => one.name === name)
    if (symbol === undefined) throw new Error(`${file} exports no type ${name}`)
    walk.enter(checker.getDeclaredTypeOfSymbol(symbol), '')
  }
  return walk.members
}

class MemberWalk {
  readonly members: SdkMember[] = []
  readonly #checker: ts.TypeChecker
  readonly #entered = new Set<ts.Type>()
  readonly #listed = new Set<string>()

  constructor(checker: ts.TypeChecker) {
    this.#checker = checker
  }

  enter(type: ts.Type, path: string): void {
    if (type.isUnionOrIntersection()) {
      for (const part of type.types) this.enter(part, path)
      return
    }
    const element = this.#elementOf(type)
    if (element !== undefined) {
      this.enter(element, `${path}[]`)
      return
    }
    if ((type.flags & ts.TypeFlags.Object) === 0 || this.#entered.has(type)) return
    this.#entered.add(type)
    const values = this.#checker.getIndexTypeOfType(type, ts.IndexKind.String)
    if (values !== undefined) this.enter(values, `${path}{}`)
    for (const member of this.#checker.getPropertiesOfType(type)) this.#addMember(type, member, path)
  }

  #addMember(holder: ts.Type, member: ts.Symbol, path: string): void {
    const declaration = member.declarations?.[0]
    if (declaration === undefined || !isOfResources(declaration)) return
    const type = this.#checker.getTypeOfSymbol(member)
    const place = path === '' ? member.name : `${path}.${member.name}`
    const owner = ownerOf(declaration)
    const ownerTypes = this.#literalsOf(holder.getProperty('type'))
    const key = `${owner} ${ownerTypes.join()} ${member.name}`
    if (!this.#listed.has(key)) {
      this.#listed.add(key)
      this.members.push({
        path: place,
        name: member.name,
        owner,
        ownerTypes,
        isText: partsOf(type).some(isAnyString),
        isTextList: partsOf(type).some((part) => partsOf(this.#elementOf(part)).some(isAnyString)),
        comment: ts.displayPartsToString(member.getDocumentationComment(this.#checker)),
      })
    }
    this.enter(type, place)
  }

  #elementOf(type: ts.Type): ts.Type | undefined {
    return this.#checker.isArrayType(type) ? this.#checker.getTypeArguments(type as ts.TypeReference)[0] : undefined
  }

  #literalsOf(member: ts.Symbol | undefined): readonly string[] {
    const type = member && this.#checker.getTypeOfSymbol(member)
    return partsOf(type).flatMap((part) => (part.isStringLiteral() ? [part.value] : []))
  }
}

function partsOf(type: ts.Type | undefined): readonly ts.Type[] {
  if (type === undefined) return []
  return type.isUnion() ? type.types : [type]
}

/** `(string & {})` stands for any string in lists of known values. */
function isAnyString(type: ts.Type): boolean {
  if (type.isIntersection()) return type.types.some(isAnyString)
  return (type.flags & ts.TypeFlags.String) !== 0
}

function isOfResources(declaration: ts.Declaration): boolean {
  return declaration.getSourceFile().fileName.includes('/resources/')
}

/** Names of the enclosing types and namespaces, from the outside. */
function ownerOf(declaration: ts.Declaration): string {
  const names: string[] = []
  for (let node: ts.Node = declaration.parent; !ts.isSourceFile(node); node = node.parent)
    if (ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node) || ts.isModuleDeclaration(node))
      names.unshift(node.name.text)
  return names.join('.')
}
