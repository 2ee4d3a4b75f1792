/**
 * An id of a model: one in a map of models, or any other string, whose request is then not narrowed. A map is an interface with one
 * member for each model, so that hosts can add theirs by declaration merging.
 */
export type ModelId<Models> = keyof Models | (string & {})

/** A member of a model's row in a map; `Missing` if the row lacks it, `Other` for ids outside the map. */
type MemberOf<Models, Model, Name extends string, Missing, Other> = Model extends keyof Models
  ? Models[Model] extends { readonly [Member in Name]: infer Value }
    ? Value
    : Missing
  : Other

/** The request of a model in its map; `Other` for ids outside the map. */
export type RequestOf<Models, Model, Other> = MemberOf<Models, Model, 'request', Other, Other>

/** Request of a model together with its id: the body that is sent. */
export type ModelRequest<Models, Model, Other> = { readonly model: Model } & RequestOf<Models, Model, Other>

/** The answer of a model in its map; `Other` for ids outside the map. */
export type AnswerOf<Models, Model, Other> = MemberOf<Models, Model, 'answer', Other, Other>

/** The events of a streaming model in its map; `never` if it does not stream, `Other` for unknown ids. */
export type EventOf<Models, Model, Other> = MemberOf<Models, Model, 'event', never, Other>

/** Values of `stream`: only false for a model without events. */
export type StreamOf<Event> = [Event] extends [never] ? false : boolean

/** The type of one field of a request; `Other` if the request lacks it. */
export type FieldOf<Request, Name extends string, Other> = Request extends { readonly [Field in Name]?: infer Value }
  ? Exclude<Value, undefined | null>
  : Other
