; One agent in a household: go, open, take, put, and change the state of what is held.
; Predicate, action and parameter names are ALFRED's, so the grammar and the goals apply.
; `checked` has no reader: it gives actions that only print text an effect.
(define (domain alfred)
 (:requirements :adl :typing)
 (:types agent location receptacle object rtype otype)
 (:predicates
  (atLocation ?a - agent ?l - location)
  (receptacleAtLocation ?r - receptacle ?l - location)
  (objectAtLocation ?o - object ?l - location)
  (receptacleType ?r - receptacle ?rt - rtype)
  (objectType ?o - object ?ot - otype)
  (canContain ?rt - rtype ?ot - otype)
  (inReceptacle ?o - object ?r - receptacle)
  (holds ?a - agent ?o - object)
  (holdsAny ?a - agent)
  (openable ?r - receptacle)
  (opened ?r - receptacle)
  (pickupable ?o - object)
  (cleanable ?o - object)
  (isClean ?o - object)
  (heatable ?o - object)
  (isHot ?o - object)
  (coolable ?o - object)
  (isCool ?o - object)
  (toggleable ?o - object)
  (isOn ?o - object)
  (isToggled ?o - object)
  (sliceable ?o - object)
  (isSliced ?o - object)
  (isReceptacleObject ?o - object)
  (inReceptacleObject ?o - object ?outer - object)
  (checked ?x))

 (:action GotoLocation
  :parameters (?a - agent ?lStart - location ?lEnd - location ?r - receptacle)
  :precondition (and (atLocation ?a ?lStart) (receptacleAtLocation ?r ?lEnd))
  :effect (and (not (atLocation ?a ?lStart)) (atLocation ?a ?lEnd)))

 (:action OpenObject
  :parameters (?a - agent ?l - location ?r - receptacle)
  :precondition (and (atLocation ?a ?l) (receptacleAtLocation ?r ?l)
                     (openable ?r) (not (opened ?r)))
  :effect (and (opened ?r) (checked ?r)))

 (:action CloseObject
  :parameters (?a - agent ?l - location ?r - receptacle)
  :precondition (and (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (openable ?r) (opened ?r))
  :effect (not (opened ?r)))

 (:action PickupObject
  :parameters (?a - agent ?l - location ?o - object ?r - receptacle)
  :precondition (and (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (inReceptacle ?o ?r)
                     (or (not (openable ?r)) (opened ?r))
                     (pickupable ?o) (not (holdsAny ?a)))
  :effect (and (holds ?a ?o) (holdsAny ?a)
               (not (inReceptacle ?o ?r)) (not (objectAtLocation ?o ?l))))

 (:action PutObject
  :parameters (?a - agent ?l - location ?o - object ?r - receptacle ?ot - otype ?rt - rtype)
  :precondition (and (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (holds ?a ?o)
                     (or (not (openable ?r)) (opened ?r))
                     (objectType ?o ?ot) (receptacleType ?r ?rt) (canContain ?rt ?ot))
  :effect (and (inReceptacle ?o ?r) (objectAtLocation ?o ?l)
               (not (holds ?a ?o)) (not (holdsAny ?a))))

 (:action CleanObject
  :parameters (?a - agent ?l - location ?r - receptacle ?o - object)
  :precondition (and (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (holds ?a ?o)
                     (receptacleType ?r SinkBasinType) (cleanable ?o))
  :effect (isClean ?o))

 (:action HeatObject
  :parameters (?a - agent ?l - location ?r - receptacle ?o - object)
  :precondition (and (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (holds ?a ?o)
                     (receptacleType ?r MicrowaveType) (heatable ?o))
  :effect (and (isHot ?o) (not (isCool ?o))))

 (:action CoolObject
  :parameters (?a - agent ?l - location ?r - receptacle ?o - object)
  :precondition (and (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (holds ?a ?o)
                     (receptacleType ?r FridgeType) (coolable ?o))
  :effect (and (isCool ?o) (not (isHot ?o))))

 (:action ToggleObject
  :parameters (?a - agent ?l - location ?o - object ?r - receptacle)
  :precondition (and (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (inReceptacle ?o ?r)
                     (toggleable ?o))
  :effect (and (isToggled ?o)
               (when (isOn ?o) (not (isOn ?o)))
               (when (not (isOn ?o)) (isOn ?o))))

 (:action SliceObject
  :parameters (?a - agent ?l - location ?co - object ?ko - object)
  :precondition (and (atLocation ?a ?l) (objectAtLocation ?co ?l) (holds ?a ?ko)
                     (or (objectType ?ko KnifeType) (objectType ?ko ButterKnifeType))
                     (sliceable ?co))
  :effect (isSliced ?co))

 (:action look
  :parameters (?a - agent ?l - location)
  :precondition (atLocation ?a ?l)
  :effect (checked ?l))

 (:action inventory
  :parameters (?a - agent)
  :precondition ()
  :effect (checked ?a))

 (:action examineReceptacle
  :parameters (?a - agent ?r - receptacle)
  :precondition (exists (?l - location)
                        (and (atLocation ?a ?l) (receptacleAtLocation ?r ?l)))
  :effect (checked ?r))

 ; ALFRED's text also means objects in sight, but a comma in it makes that branch void.
 (:action examineObject
  :parameters (?a - agent ?o - object)
  :precondition (holds ?a ?o)
  :effect (checked ?o))

 (:action help
  :parameters (?a - agent)
  :precondition ()
  :effect (checked ?a))
)
